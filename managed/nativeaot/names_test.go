package nativeaot

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/loader"
)

// withSymbols opens the recorded dump with the program's debug file.
func withSymbols(t *testing.T) *loader.Process {
	t.Helper()
	packed, err := os.ReadFile(corpus.Path(t, "net9-nativeaot-x64", "aotapp.dbg.zst"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "aotapp.dbg"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(corpus.Path(t, "net9-nativeaot-x64", "gcore.zst"),
		&loader.Options{Find: loader.MultiFinder(loader.DirFinder(corpus.Images(t)), loader.DirFinder(dir))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Every type that the program has metadata for is called what the compiler made the
// symbol of its MethodTable of.
func TestNames(t *testing.T) {
	r := runtimeOf(t, withSymbols(t))
	if r.Version != "9.0" {
		t.Errorf("its version is %q", r.Version)
	}
	r.recordOf(0)
	mangled := strings.NewReplacer(".", "_", "+", "_", "`", "_", "<", "_", ">", "_", "|", "_", "-", "_")
	simple := regexp.MustCompile(`^_ZTV\d+(Boxed_)?[A-Z][A-Za-z]+\d*$`) // Int32, String: the language's own types
	named := 0
	for table := range r.types.handles {
		name := r.metadataName(table)
		symbol := r.Image.DataSymbol(table, tableSymbol)
		if name == "" {
			continue // of generic ones, instantiations
		}
		if named++; symbol != "" && !simple.MatchString(symbol) && !strings.HasSuffix(symbol, "_"+mangled.Replace(name)) {
			t.Errorf("%v is called %s, and its symbol %s", table, name, symbol)
		}
	}
	if named < 400 {
		t.Errorf("%d types have names", named)
	}
	for table, want := range map[arch.LinkAddr]string{0x178578: "System.InvalidOperationException", 0x17b1b8: "System.IO.IOException"} {
		if name := r.metadataName(arch.Addr(r.Image.Bias() + uint64(table))); name != want {
			t.Errorf("%s is called %q", want, name)
		}
	}
	if name := r.metadataName(0x1000); name != "" {
		t.Errorf("what is no type is called %s", name)
	}
}

// Numbers of the native format, and those that are cut short.
func TestNumber(t *testing.T) {
	for _, c := range []struct {
		b      string
		v      uint32
		signed int32
		n      int
	}{
		{"\x0e", 7, 7, 1},
		{"\xfe", 127, -1, 1},
		{"\x01\x04", 256, 256, 2},
		{"\xfd\xff", 0x3fff, -1, 2},
		{"\x03\x00\x01", 8192, 8192, 3},
		{"\x07\x00\x00\x10", 1 << 24, 1 << 24, 4},
		{"\x0f\x00\x00\x00\x80", 1 << 31, -1 << 31, 5},
		{"\x01", 0, 0, 0},
		{"\x0f\x00\x00\x00", 0, 0, 0},
		{"", 0, 0, 0},
	} {
		v, n, ok := unsigned([]byte(c.b))
		w, m, ok2 := signed([]byte(c.b))
		if v != c.v || w != c.signed || n != c.n || m != c.n || ok != (c.n > 0) || ok2 != ok {
			t.Errorf("%x: %d of %d bytes, signed %d of %d; want %d, %d of %d", c.b, v, n, w, m, c.v, c.signed, c.n)
		}
	}
}

// FuzzNames reads bytes as a hash table, and as metadata with a type at every offset:
// what is read must end.
func FuzzNames(f *testing.F) {
	f.Add([]byte("\x00\x02\x08\x10\x02\x20\x00\x00\x00\x02"))
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x02\x02\x02\x02\x02\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		eachVertex(b, func(at int) {
			if n++; at < 0 || at >= len(b) {
				t.Fatalf("a vertex at %d of %d bytes", at, len(b))
			}
		})
		if n > maxTypes {
			t.Errorf("%d vertices in %d bytes", n, len(b))
		}
		const base = 0x10000
		r := &Runtime{Image: &loader.Image{}, mem: memtest.Piece[arch.Addr]{At: base, Data: b}}
		r.types.once.Do(func() {})
		r.metadata = arch.Span{Lo: base, Hi: base + arch.Addr(len(b))}
		for off := range min(len(b), 64) {
			r.version()
			r.types.handles = map[arch.Addr]uint32{1: handleType<<handleKind | uint32(off)}
			if name := r.metadataName(1); len(name) > maxChain*(maxText+1) {
				t.Errorf("a name of %d bytes", len(name))
			}
		}
	})
}
