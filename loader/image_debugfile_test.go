package loader

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/objfile"
)

// stripped returns a library without unwind tables, and the file that its
// debugging information was taken to, which has .debug_frame and .symtab.
func stripped(t *testing.T, flags ...string) (lib, debug []byte) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "l.so")
	whole := elfFile(t, append([]string{"-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-O2"}, flags...))
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--only-keep-debug", "l.so", "l.dbg"},
		{"--strip-all", "--add-gnu-debuglink=l.dbg", "l.so"},
	} {
		c := exec.Command("objcopy", args...)
		c.Dir = dir
		if msg, err := c.CombinedOutput(); err != nil {
			t.Skipf("objcopy: %v: %s", err, msg)
		}
	}
	lib, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	debug, err = os.ReadFile(filepath.Join(dir, "l.dbg"))
	if err != nil {
		t.Fatal(err)
	}
	return lib, debug
}

// A file of debugging information is found where gdb finds it, and serves
// unwind tables and symbols alike; one of another build is not taken.
func TestDebugFile(t *testing.T) {
	lib, debug := stripped(t)
	plain, plainDebug := stripped(t, "-Wl,--build-id=none")
	_, other := stripped(t, "-DOTHER", "-O0")
	dir := t.TempDir()
	for _, c := range []struct {
		name       string
		lib, debug []byte
		image, at  string // under dir
		find       func(dir string) Finder
		ok         bool
	}{
		{"beside", lib, debug, "l.so", "l.dbg", DirFinder, true},
		{"in .debug", lib, debug, "l.so", ".debug/l.dbg", DirFinder, true},
		{"beside, by path", lib, debug, "l.so", "l.dbg", pathIn, true},
		{"in .debug, by path", lib, debug, "l.so", ".debug/l.dbg", pathIn, true},
		{"by build-id", lib, debug, "l.so", ".build-id/" + idOf(t, lib)[:2] + "/" + idOf(t, lib)[2:] + ".debug", DirFinder, true},
		{"without the image", lib, debug, "", ".build-id/" + idOf(t, lib)[:2] + "/" + idOf(t, lib)[2:] + ".debug", DirFinder, true},
		{"by checksum", plain, plainDebug, "l.so", ".debug/l.dbg", pathIn, true},
		{"of another build", lib, other, "l.so", ".debug/l.dbg", pathIn, false},
		{"of another checksum", plain, other, "l.so", ".debug/l.dbg", pathIn, false},
	} {
		sub := filepath.Join(dir, c.name)
		for at, data := range map[string][]byte{c.image: c.lib, c.at: c.debug} {
			if at == "" {
				continue
			}
			path := filepath.Join(sub, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := mapLibrary(t, c.lib, true).open(t, &Options{Find: c.find(sub)})
		m := p.Images[0]
		if _, why, _ := m.File(); (why == Present) != (c.image != "") {
			t.Errorf("%s: the image's file: %v", c.name, why)
		}
		d := parseDebugFile(c.debug)
		for _, name := range []string{".debug_frame", ".symtab"} {
			want := d.Section(name)
			if len(want) == 0 {
				t.Fatalf("%s: the debug file has no %s", c.name, name)
			}
			if got := m.Section(name); bytes.Equal(got, want) != c.ok || !c.ok && got != nil {
				t.Errorf("%s: %s has %d bytes", c.name, name, len(got))
			}
		}
	}
}

// idOf returns the build-id of an ELF file.
func idOf(t *testing.T, data []byte) string {
	h, err := objfile.ParseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	progs, _ := objfile.ParseProgs(data, h.Phoff, h.Phnum)
	return objfile.FileBuildID(data, progs)
}

// pathIn finds an image as if the process had had it in dir, and debug files by
// PathFinder alone.
func pathIn(dir string) Finder { return elsewhere(dir) }

type elsewhere string

func (d elsewhere) Find(id ImageID, path string) []string {
	if path == "" {
		return PathFinder().Find(id, "")
	}
	return existing(filepath.Join(string(d), baseName(path)))
}
