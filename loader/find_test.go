package loader

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Each kind of tree is found by identity; a plain tree by name.
func TestDirFinder(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{
		"elf/aabbcc/libx.so", "112233/liby.so", ".build-id/dd/eeff.debug", ".build-id/12/3456",
		"pe/A.dll/5F00000Ae000/A.dll", "B.dll/0000abcd1000/B.dll", "deep/er/C.dll", "usr/lib/libz.so", "libz.so",
	} {
		path := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := DirFinder(dir)
	for _, c := range []struct {
		id   ImageID
		path string
		want string
	}{
		{ImageID{Name: "libx.so", BuildID: "aabbcc"}, "/old/libx.so", "elf/aabbcc/libx.so"},
		{ImageID{Name: "liby.so.1", BuildID: "112233"}, "", "112233/liby.so"},
		{ImageID{Name: "prog", BuildID: "ddeeff"}, "", ".build-id/dd/eeff.debug"},
		{ImageID{Name: "prog", BuildID: "123456"}, "", ".build-id/12/3456"},
		{ImageID{Name: "A.dll", Timestamp: 0x5f00000a, Size: 0xe000}, "", "pe/A.dll/5F00000Ae000/A.dll"},
		{ImageID{Name: "B.dll", Timestamp: 0xabcd, Size: 0x1000}, "", "B.dll/0000abcd1000/B.dll"},
		{ImageID{Name: "c.dll"}, `C:\app\C.dll`, "deep/er/C.dll"},
		{ImageID{Name: "libz.so"}, "/usr/lib/libz.so", "usr/lib/libz.so"},
	} {
		got := d.Find(c.id, c.path)
		if want := filepath.Join(dir, filepath.FromSlash(c.want)); len(got) == 0 || got[0] != want {
			t.Errorf("%+v: %v, want %s", c.id, got, want)
		}
	}
	// Names from a broken dump lead nowhere.
	for _, id := range []ImageID{{Name: "none.so", BuildID: "ffff"}, {}, {Name: ".."}, {Name: "../libz.so"}, {Name: "elf"}} {
		if got := d.Find(id, ""); len(got) > 0 {
			t.Errorf("%+v: %v", id, got)
		}
	}
	if got := DirFinder(filepath.Join(dir, "nothing")).Find(ImageID{Name: "a"}, "/a"); len(got) > 0 {
		t.Errorf("a folder that is not there: %v", got)
	}
}

func TestOtherFinders(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(lib, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := MultiFinder(nil, BesideFinder(filepath.Join(dir, "core")), PathFinder())
	if got := f.Find(ImageID{Name: "lib.so"}, "/elsewhere/lib.so"); len(got) != 1 || got[0] != lib {
		t.Errorf("beside the dump: %v", got)
	}
	if got := PathFinder().Find(ImageID{Name: "lib.so"}, lib); len(got) != 1 {
		t.Errorf("by path: %v", got)
	}
	if got := PathFinder().Find(ImageID{Name: "lib.so"}, "lib.so"); len(got) != 0 {
		t.Errorf("a relative path: %v", got)
	}
}

// A countingFinder counts how often it is asked.
type countingFinder struct {
	paths []string
	n     int
}

func (f *countingFinder) Find(ImageID, string) []string { f.n++; return f.paths }

// Places are looked at one by one, until the right file is found.
func TestLazyFinders(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"aabbcc/lib.so", "elf/aabbcc/lib.so", "aabbcc/other.so"} {
		path := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := &countingFinder{paths: []string{"z"}}
	f, id := MultiFinder(&countingFinder{}, DirFinder(dir), last), ImageID{Name: "lib.so", BuildID: "aabbcc"}
	for n, want := range []int{0, 0, 0, 1} {
		last.n = 0
		k := 0
		for range each(f, id, "/lib.so") {
			if k++; k > n {
				break
			}
		}
		if last.n != want {
			t.Errorf("after %d files the last finder was asked %d times", k, last.n)
		}
	}
	// Each file once, those of the name first.
	var want []string
	for _, p := range []string{"aabbcc/lib.so", "elf/aabbcc/lib.so", "aabbcc/other.so"} {
		want = append(want, filepath.Join(dir, filepath.FromSlash(p)))
	}
	if got := f.Find(id, "/lib.so"); !slices.Equal(got, append(want, "z")) {
		t.Errorf("%q", got)
	}
}
