// Package floors checks what the house plan promises: imports point down, no
// CPU is named outside of arch, and every file is built everywhere.
package floors

import (
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const mod = "github.com/seamwalk/seam/"

// floors lists the packages from the ground up. A package may import those of
// lower floors, and none of its own.
var floors = [][]string{
	{"arch", "internal/bin", "internal/golden", "internal/coreedit", "internal/corpus"},
	{"internal/objfile"},
	{"loader", "unwind", "internal/ecma"},
	{"managed/clr"},
	{"managed"},
	{"managed/profiler"},
	{"internal/symbolize"},
	{"internal/report"},
	{"cmd/seam"},
}

// sources yields every Go file of the program, tests aside, with the folder
// it lies in.
func sources(t *testing.T, each func(path, dir string)) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "floors" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			dir, _ := filepath.Rel(root, filepath.Dir(path))
			each(path, filepath.ToSlash(dir))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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

var cpu = regexp.MustCompile(`(?i)amd64|x86_?64|arm64|aarch64`)

// What differs by CPU is data in arch: nobody else asks which one it is.
func TestNoCPUOutsideArch(t *testing.T) {
	sources(t, func(path, dir string) {
		if dir == "arch" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(path, set.Base(), len(text)), text, nil, 0)
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				break
			}
			if (tok == token.IDENT || tok == token.STRING) && cpu.MatchString(lit) {
				t.Errorf("%v names a CPU: %s", set.Position(pos), lit)
			}
		}
	})
}
