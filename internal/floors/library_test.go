package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// public returns the packages that other programs import.
func public() (list []string) {
	for _, floor := range floors {
		for _, p := range floor {
			if !strings.HasPrefix(p, "internal/") && !strings.HasPrefix(p, "cmd/") {
				list = append(list, p)
			}
		}
	}
	return list
}

// dependencies are all packages of other modules that an importer of the library
// gets, with what they are for. A prefix that ends with a slash stands for all
// below it.
var dependencies = map[string]string{
	"github.com/ianlancetaylor/demangle":         "names of C++ and Rust",
	"github.com/klauspost/compress/":             "dumps and sections packed by zstd and gzip",
	"github.com/ulikunitz/xz/":                   ".gnu_debugdata",
	"github.com/go-delve/delve/pkg/dwarf/regnum": "numbers of registers",
	"golang.org/x/arch/x86/x86asm":               "instructions of x86-64",
	"golang.org/x/sys/":                          "mapped files, and what CPU this program runs on",
}

// allowed reports whether an importer may get the package p.
func allowed(p string) bool {
	if strings.HasPrefix(p, mod) {
		return true
	}
	for d := range dependencies {
		if p == strings.TrimSuffix(d, "/") || strings.HasSuffix(d, "/") && strings.HasPrefix(p, d) {
			return true
		}
	}
	return false
}

// An importer of the library gets no framework of a command line, and nothing
// that only tests need.
func TestDependencies(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command lists dependencies, and is not here")
	}
	args := []string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}
	for _, p := range public() {
		args = append(args, mod+p)
	}
	out, err := exec.Command(goTool, args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, mod+"managed") {
		t.Fatalf("go list names %d packages, and managed is none of them", len(deps))
	}
	for _, p := range deps {
		if !allowed(p) {
			t.Errorf("an importer of the library gets %s", p)
		}
	}
	for _, p := range []string{"github.com/spf13/cobra", "github.com/go-delve/delve/pkg/proc", "golang.org/x/archive"} {
		if allowed(p) {
			t.Errorf("%s would be let through", p)
		}
	}
}

// undocumented returns what a file exports without saying what it is. For a group
// of constants or variables the comment over the group is enough, and for
// constants with a type, which the first of a group has, that of the type.
func undocumented(set *token.FileSet, f *ast.File) (found []string) {
	say := func(id *ast.Ident, doc ...*ast.CommentGroup) {
		for _, d := range doc {
			if d.Text() != "" {
				return
			}
		}
		if id.IsExported() {
			found = append(found, set.Position(id.Pos()).String()+": "+id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) && !implements[d.Name.Name] {
				say(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					say(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					if first := d.Specs[0].(*ast.ValueSpec); d.Tok == token.CONST && first.Type != nil {
						continue
					}
					for _, id := range s.Names {
						say(id, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return found
}

// implements are methods that satisfy an interface everybody knows.
var implements = map[string]bool{"String": true, "Error": true, "Unwrap": true}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// Every package says what it is, and every exported name of the library too.
func TestDocumented(t *testing.T) {
	said := map[string]bool{}
	sources(t, func(path, dir string) {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		said[dir] = said[dir] || f.Doc.Text() != ""
		if slices.Contains(public(), dir) {
			for _, u := range undocumented(set, f) {
				t.Errorf("%s is exported and not documented", u)
			}
		}
	})
	for dir, ok := range said {
		if !ok {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

// TestUndocumentedIsSeen checks that the gate can fail.
func TestUndocumentedIsSeen(t *testing.T) {
	const text = `package p

// Said.
type A struct{}

type B struct{}

func F() {}

func (B) M() {}

func (B) String() string { return "" }

func (b) M() {}

const (
	C = 1
	D = 2 // said
)

const (
	H A = iota
	I
)

// Said.
var E, G int
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got := undocumented(set, f); len(got) != 4 {
		t.Errorf("%q, want B, F, M and C", got)
	}
}
