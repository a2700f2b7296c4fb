// Package floors checks that imports only ever point down.
package floors

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const mod = "github.com/seamwalk/seam/"

// floors lists the packages from the ground up. A package may import those of
// lower floors, and none of its own.
var floors = [][]string{
	{"arch", "internal/bin", "internal/golden", "internal/assemble"},
	{"loader", "unwind", "internal/ecma"},
	{"managed/clr"},
	{"managed"},
	{"internal/symbolize"},
	{"internal/report"},
	{"cmd/seam"},
}

func TestFloors(t *testing.T) {
	floor := map[string]int{}
	for i, f := range floors {
		for _, p := range f {
			floor[p] = i
		}
	}
	root := filepath.Join("..", "..")
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "floors") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		from, ok := floor[filepath.ToSlash(dir)]
		if !ok {
			t.Errorf("%s is on no floor", dir)
		}
		// A name like x_arm64.go or x_linux.go is built on that machine only.
		if ok, _ := build.Default.MatchFile(filepath.Dir(path), d.Name()); !ok {
			t.Errorf("%s is not built everywhere", path)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if p, ours := strings.CutPrefix(p, mod); ours && floor[p] >= from {
				t.Errorf("%s: floor %d imports %s, floor %d", path, from, p, floor[p])
			}
		}
		return nil
	})
}
