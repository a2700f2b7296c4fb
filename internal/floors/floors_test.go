// Package floors checks what the house plan promises: imports point down, CPUs
// and operating systems are named where they are described and nowhere else, every
// file is built everywhere, files and functions can be read at one go, the library
// needs few other modules, and what it exports is documented.
package floors

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const mod = "github.com/seamwalk/seam/"

// floors lists the packages from the ground up. A package may import those of
// lower floors, and none of its own.
var floors = [][]string{
	{"arch", "internal/bin", "internal/golden", "internal/coreedit", "internal/corpus", "internal/memtest"},
	{"internal/objfile"},
	{"internal/ecma"},
	{"loader", "unwind", "internal/pdb"},
	{"managed/code"},
	{"managed/clr", "managed/nativeaot"},
	{"managed"},
	{"internal/symbolize"},
	{"managed/stacks"},
	{"managed/profiler"},
	{"internal/report"},
	{"cmd/seam"},
}

// root is the folder of the module, as tests of this package see it.
var root = filepath.Join("..", "..")

// rel returns the path of a file or a folder in the module, with slashes.
func rel(path string) string {
	p, _ := filepath.Rel(root, path)
	return filepath.ToSlash(p)
}

// files yields every Go file of the module, with the folder it lies in.
func files(t *testing.T, each func(path, dir string)) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			each(path, rel(filepath.Dir(path)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources yields every Go file of the program, tests aside, with the folder
// it lies in.
func sources(t *testing.T, each func(path, dir string)) {
	files(t, func(path, dir string) {
		if !strings.HasSuffix(path, "_test.go") {
			each(path, dir)
		}
	})
}

func TestFloors(t *testing.T) {
	floor := map[string]int{}
	for i, f := range floors {
		for _, p := range f {
			floor[p] = i
		}
	}
	sources(t, func(path, dir string) {
		from, ok := floor[dir]
		if !ok {
			t.Errorf("%s is on no floor", dir)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if p, ours := strings.CutPrefix(p, mod); ours && floor[p] >= from {
				t.Errorf("%s: floor %d imports %s, floor %d", path, from, p, floor[p])
			}
		}
	})
}

// A name like x_arm64.go or x_linux.go is built on that machine only, and
// every dump is read on every machine. Files that must differ by the machine
// they run on say so in a constraint, and come with their counterpart.
func TestBuiltEverywhere(t *testing.T) {
	sources(t, func(path, dir string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n//go:build ") || strings.HasPrefix(string(text), "//go:build ") {
			return
		}
		if ok, _ := build.Default.MatchFile(filepath.Dir(path), filepath.Base(path)); !ok {
			t.Errorf("%s is not built everywhere", path)
		}
	})
}
