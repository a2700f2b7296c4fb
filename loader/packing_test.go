package loader

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
		p.Close()
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
