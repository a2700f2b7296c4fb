package floors

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Bounds of what one reads at a time, in lines. Code that is hard to split is
// mostly two things.
const (
	maxFile     = 500
	maxFunction = 80
)

// tooLong returns the functions of a Go file that have more lines than most, or
// the file itself.
func tooLong(path string, text []byte, mostFile, mostFunction int) (found []string, err error) {
	if n := bytes.Count(text, []byte("\n")); n > mostFile {
		found = append(found, fmt.Sprintf("%s has %d lines, more than %d", path, n, mostFile))
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > mostFunction {
			found = append(found, fmt.Sprintf("%v: %s has %d lines, more than %d", set.Position(fn.Pos()), fn.Name.Name, n, mostFunction))
		}
	}
	return found, nil
}

// Tests are files of the same length; their tables may make a function longer.
func TestSizes(t *testing.T) {
	files(t, func(path, dir string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		most := maxFunction
		if strings.HasSuffix(path, "_test.go") {
			most = maxFile
		}
		found, err := tooLong(rel(path), text, maxFile, most)
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			t.Error(f)
		}
	})
}

// TestSizesAreSeen checks that the gate can fail.
func TestSizesAreSeen(t *testing.T) {
	const text = "package p\n\nfunc short() {\n}\n\n// Comments before a function do not count.\nfunc (t T) long() {\n\tx()\n\ty()\n}\n"
	for _, c := range []struct{ file, function, want int }{{10, 4, 0}, {9, 4, 1}, {10, 3, 1}, {9, 1, 3}} {
		if got, err := tooLong("p.go", []byte(text), c.file, c.function); err != nil || len(got) != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
