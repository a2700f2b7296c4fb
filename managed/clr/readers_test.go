package clr

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers are what this package reads the memory of a process by.
var readers = []string{"u8", "u16", "u32", "word", "linked", "linkedByte", "View", "Word", "CString"}

// evidence is what a test holds the reading of a structure against: a dump with
// bytes that the test has changed, a memory that it has made, or a recorded dump.
var evidence = []string{"coreedit", "corpus", "core", "openRecorded"}

// TestReadersHaveTests: each file that reads structures of the runtime out of
// memory has a test that calls a function of the file, and that edits a dump, makes
// a memory, or reads a recorded dump. A test that only runs into a file by way of
// another one does not count, nor does a function whose name two files have.
func TestReadersHaveTests(t *testing.T) {
	tests, helpers := map[string]map[string]bool{}, map[string]map[string]bool{}
	reading := map[string][]string{} // by file, the functions that it declares
	declared := map[string]int{}     // in how many files
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		reads := false
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			used := identifiers(fn)
			switch {
			case !strings.HasSuffix(path, "_test.go"):
				names = append(names, fn.Name.Name)
				declared[fn.Name.Name]++
				reads = reads || slices.ContainsFunc(readers, func(r string) bool { return used[r] })
			case strings.HasPrefix(fn.Name.Name, "Test") && path != "readers_test.go":
				tests[fn.Name.Name] = used
			default:
				helpers[fn.Name.Name] = used
			}
		}
		if reads {
			reading[path] = names
		}
	}
	if len(reading) < 20 || len(tests) < 30 {
		t.Fatalf("%d files that read, %d tests", len(reading), len(tests))
	}
	for _, used := range tests {
		include(used, helpers)
	}
	for path, names := range reading {
		var by []string
		for test, used := range tests {
			calls := slices.ContainsFunc(names, func(n string) bool {
				return used[n+"()"] && declared[n] == 1 && !slices.Contains(readers, n)
			})
			if calls && slices.ContainsFunc(evidence, func(e string) bool { return used[e] }) {
				by = append(by, test)
			}
		}
		if slices.Sort(by); len(by) == 0 {
			t.Errorf("%s reads structures of the runtime, and no test holds it against bytes", path)
		}
		t.Logf("%s: %v", path, by)
	}
}

// identifiers returns the names that a function uses, and those that it calls with
// parentheses behind them.
func identifiers(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names[n.Name] = names[n.Name] || n != fn.Name
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				names[f.Name+"()"] = true
			case *ast.SelectorExpr:
				names[f.Sel.Name+"()"] = true
			}
		}
		return true
	})
	return names
}

// include adds to what a test uses all that the helpers use that it calls.
func include(used map[string]bool, helpers map[string]map[string]bool) {
	for more := true; more; {
		more = false
		for name, of := range helpers {
			if !used[name+"()"] || used["included "+name] {
				continue
			}
			used["included "+name], more = true, true
			for n := range of {
				used[n] = true
			}
		}
	}
}
