package loader

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A packed dump that is cut or has a wrong byte gives what came before, and
// says that it is the packing that is at fault.
func TestDamagedPacking(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("..", "testdata", "dumps", "net10-hello", "core.zst"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)*2/3] ^= 0x55
	for name, data := range map[string][]byte{"cut": whole[:len(whole)*2/3], "damaged": damaged} {
		path := filepath.Join(t.TempDir(), "core.zst")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Open(path, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(p.Threads) != 18 {
			t.Errorf("%s: %d threads", name, len(p.Threads))
		}
		if !slices.ContainsFunc(p.Warnings, func(w Warning) bool { return w.Code == "packing_damaged" && w.Off > 0 }) {
			t.Errorf("%s: warnings %v", name, p.Warnings)
		}
		for _, w := range p.Warnings {
			if w.Code == "packing_damaged" && (!strings.Contains(w.Text, "packed with zstd and "+name) || !strings.Contains(w.Text, "were unpacked")) {
				t.Errorf("%s: says %q", name, w.Text)
			}
		}
		p.Close()
		// So little that it is no dump: the error names the packing all the same.
		if err := os.WriteFile(path, data[:40], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), "packed with zstd and cut") {
			t.Errorf("40 bytes: %v", err)
		}
	}
	var packed bytes.Buffer
	z, _ := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedFastest))
	z.Write([]byte("\x7fELF"))
	z.Flush()
	z.Write(make([]byte, 100))
	z.Close()
	path := filepath.Join(t.TempDir(), "core.zst")
	if err := os.WriteFile(path, packed.Bytes()[:packed.Len()-6], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), "packed with zstd and cut") {
		t.Errorf("a packed dump that is cut within its header: %v", err)
	}
	p, err := Open(filepath.Join("..", "testdata", "dumps", "net10-hello", "core.zst"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Warnings) != 0 {
		t.Errorf("the whole dump: %v", p.Warnings)
	}
}
