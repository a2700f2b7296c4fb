package loader

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/arch"
)

// Every mapping that /proc/pid/maps had of a library or an assembly lies in an
// image of that name, with no file at hand, whoever wrote the dump.
func TestCorpusImages(t *testing.T) {
	for _, c := range []struct{ dump, maps string }{
		{"net10-hello-x64/normal.zst", "net10-hello-x64/maps.zst"},
		{"net10-scenarios-x64/normal.zst", "net10-scenarios-x64/maps.zst"},
		{"net10-r2r-x64/normal.zst", "net10-r2r-x64/maps.zst"},
		{"net10-composite-x64/normal.zst", "net10-composite-x64/maps.zst"},
		{"net10-singlefile-x64/nodac.zst", "net10-singlefile-x64/maps.zst"},
		{"net8-scenarios-x64/normal.zst", "net8-scenarios-x64/maps.zst"},
	} {
		p, err := Open(corpus.Path(t, c.dump), nil)
		if err != nil {
			t.Fatal(err)
		}
		z, err := os.ReadFile(corpus.Path(t, c.maps))
		if err != nil {
			t.Fatal(err)
		}
		dec, _ := zstd.NewReader(nil)
		text, err := dec.DecodeAll(z, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
			f := strings.Fields(sc.Text())
			if len(f) < 6 || !strings.HasPrefix(f[5], "/") || strings.Contains(f[5], "memfd:") || strings.HasSuffix(f[5], ".pdb") || strings.HasSuffix(f[5], ".dump") {
				continue
			}
			var lo, hi uint64
			fmt.Sscanf(f[0], "%x-%x", &lo, &hi)
			m := p.ImageAt(arch.Addr(lo))
			bundled := m != nil && m.Format == "pe" && m.Path == f[5]
			if m == nil || !m.Span().Has(arch.Addr(hi-1)) || m.ID.Name != baseName(f[5]) && !bundled {
				t.Errorf("%s: %s: lies in %+v", c.dump, sc.Text(), m)
			}
			n++
		}
		if n < 50 {
			t.Errorf("%s: %d mappings", c.dump, n)
		}
		if m := p.ImageAt(p.RuntimeHint); p.RuntimeHint != 0 && (m == nil || m.Span().Lo != p.RuntimeHint || m.ID.Name != "libcoreclr.so") {
			t.Errorf("%s: the runtime at %v is %+v", c.dump, p.RuntimeHint, m)
		}
		p.Close()
	}
}
