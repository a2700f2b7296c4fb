// Package docs tests that what the documents name exists: files, packages,
// functions, types and fields, tests, and the headings that links lead to.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A document is a page that is to be true today. CHANGELOG.md is not one: it
// may name what is gone.
type document struct {
	path string // from the top of the repository, with slashes
	text string
}

func documents(t *testing.T) (docs []document) {
	t.Helper()
	for _, pattern := range []string{"../*.md", "*.md", "../testdata/README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name := path.Clean(path.Join("docs", filepath.ToSlash(f)))
			if name != "CHANGELOG.md" {
				docs = append(docs, document{name, string(b)})
			}
		}
	}
	return docs
}

// A tree is the repository: its files and folders, and what its Go code declares.
type tree struct {
	files    map[string]bool            // from the top, with slashes; folders too
	declared map[string]map[string]bool // by package name: "Open", "Memory.Word"
	in       map[string]map[string]bool // the same by folder, tests' too
	types    map[string]bool            // names of types of any package
	imports  map[string][]string        // by folder, the folders of ours that are imported
}

func readTree(t *testing.T) *tree {
	t.Helper()
	r := &tree{files: map[string]bool{}, declared: map[string]map[string]bool{}, in: map[string]map[string]bool{}, types: map[string]bool{}, imports: map[string][]string{}}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := path.Clean(path.Join("docs", filepath.ToSlash(p)))
		if name == ".git" && d.IsDir() {
			return fs.SkipDir
		}
		r.files[name] = true
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			r.readGo(t, p, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const module = "github.com/seamwalk/seam/"

// readGo enters what a Go file declares.
func (r *tree) readGo(t *testing.T, file, dir string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(f.Name.Name, "_test")
	for _, m := range []map[string]map[string]bool{r.declared, r.in} {
		for _, key := range []string{name, dir} {
			if m[key] == nil {
				m[key] = map[string]bool{}
			}
		}
	}
	declare := func(what string) { r.declared[name][what], r.in[dir][what] = true, true }
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				declare(d.Name.Name)
			} else {
				declare(receiver(d.Recv.List[0].Type) + "." + d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				r.readSpec(s, declare)
			}
		}
	}
	if strings.HasSuffix(file, "_test.go") {
		return
	}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if p, ours := strings.CutPrefix(p, module); ours && !slices.Contains(r.imports[dir], p) {
			r.imports[dir] = append(r.imports[dir], p)
		}
	}
}

func (r *tree) readSpec(s ast.Spec, declare func(string)) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			declare(n.Name)
		}
	case *ast.TypeSpec:
		declare(s.Name.Name)
		r.types[s.Name.Name] = true
		var members *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default:
			return
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				declare(s.Name.Name + "." + n.Name)
			}
			if len(m.Names) == 0 {
				declare(s.Name.Name + "." + receiver(m.Type))
			}
		}
	}
}

// receiver returns the name of the type of a receiver or embedded field.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// has reports whether there is a file or folder of that name: from the top, or
// as the end of a path.
func (r *tree) has(name string) bool {
	name = strings.TrimSuffix(name, "/")
	if r.files[name] {
		return true
	}
	for f := range r.files {
		if match, _ := path.Match(name, f); match || strings.HasSuffix(f, "/"+name) {
			return true
		}
	}
	return false
}

var (
	fences  = regexp.MustCompile("(?ms)^```.*?^```\n")
	code    = regexp.MustCompile("`([^`\n]+)`( of ([a-z][a-z/]+))?( in `([^`\n]+\\.go)`)?")
	file    = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)+/?$|^[\w-]+\.(go|md|sh|txtar|json)$`)
	dotted  = regexp.MustCompile(`^([A-Za-z]\w*)\.([A-Za-z]\w*)(\.[A-Za-z]\w*)?`)
	test    = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z_]\w*$|^Example$`)
	ident   = regexp.MustCompile(`^[A-Za-z]\w*$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestNamesExist: files, folders, and what Go code declares.
func TestNamesExist(t *testing.T) {
	r := readTree(t)
	names := 0
	for _, d := range documents(t) {
		for _, m := range code.FindAllStringSubmatch(fences.ReplaceAllString(d.text, ""), -1) {
			kind, ok := r.check(m[1], m[3], m[5])
			if kind != "" {
				names++
			}
			if !ok {
				t.Errorf("%s names %s: there is no such %s", d.path, m[0], kind)
			}
		}
	}
	if names < 80 {
		t.Errorf("only %d names were found", names)
	}
}

// check says what kind of name `name` is and whether there is one: kind is ""
// for all that does not look like a name of ours. The name may be said to be of
// a folder, or in a file.
func (r *tree) check(name, folder, in string) (kind string, ok bool) {
	top, _, _ := strings.Cut(name, "/")
	m := dotted.FindStringSubmatch(name)
	switch {
	case in != "" && ident.MatchString(name):
		b, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(in)))
		return "identifier in that file", err == nil && regexp.MustCompile(`\b`+name+`\b`).Match(b)
	case test.MatchString(name):
		for dir, names := range r.in {
			if names[name] && (folder == "" || !r.files[folder] || dir == folder) {
				return "test", true
			}
		}
		return "test", false
	case file.MatchString(name) && (r.files[top] || !strings.Contains(name, "/")):
		return "file", r.has(name)
	case m != nil && r.declared[m[1]] != nil:
		if m[3] != "" && r.declared[m[1]][m[2]] && !r.types[m[2]] {
			return "declaration", r.member(m[1], m[3]) // of a variable: arch.AMD64.On
		}
		return "declaration", r.declared[m[1]][m[2]+m[3]]
	case m != nil && ast.IsExported(m[1]) && r.types[m[1]]:
		for _, names := range r.declared {
			if names[m[1]+"."+m[2]] {
				return "member", true
			}
		}
		return "member", false
	}
	return "", true
}

// member reports whether any type of a package has the member, given as ".On".
func (r *tree) member(pkg, member string) bool {
	for name := range r.declared[pkg] {
		if strings.HasSuffix(name, member) {
			return true
		}
	}
	return false
}

var (
	goTest  = regexp.MustCompile("go test [^`\n]*")
	pattern = regexp.MustCompile(`-(?:run|bench|fuzz) '?([^'` + "`" + `\s/]+)`)
	place   = regexp.MustCompile(`\./([a-z/]+)`)
)

// TestCommands: where documents and scripts name tests to run, each name matches
// one in one of the packages. go test passes if there is none.
func TestCommands(t *testing.T) {
	r := readTree(t)
	docs := documents(t)
	for _, script := range []string{".ci/run", "testdata/cut.sh"} {
		b, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(script)))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, document{script, string(b)})
	}
	checked := 0
	for _, d := range docs {
		for _, command := range goTest.FindAllString(d.text, -1) {
			packages := place.FindAllStringSubmatch(command, -1)
			for _, m := range pattern.FindAllStringSubmatch(command, -1) {
				for _, name := range strings.Split(strings.Trim(m[1], "()"), "|") {
					if name == "^$" {
						continue // no test, for benchmarks and fuzzing
					}
					checked++
					if !slices.ContainsFunc(packages, func(p []string) bool { return r.hasTest(p[1], regexp.MustCompile(name)) }) {
						t.Errorf("%s has %q: there is no test %s", d.path, command, name)
					}
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names of tests were found", checked)
	}
}

// hasTest reports whether the package in a folder has a test, benchmark or fuzz
// test whose name matches.
func (r *tree) hasTest(dir string, name *regexp.Regexp) bool {
	for declared := range r.in[dir] {
		if test.MatchString(declared) && name.MatchString(declared) {
			return true
		}
	}
	return false
}

// TestLinks: a link leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	docs := documents(t)
	anchors := map[string][]string{}
	for _, d := range docs {
		for _, h := range heading.FindAllStringSubmatch(fences.ReplaceAllString(d.text, ""), -1) {
			anchors[d.path] = append(anchors[d.path], anchor(h[1]))
		}
	}
	for _, d := range docs {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fences.ReplaceAllString(d.text, ""), "x"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, at, _ := strings.Cut(m[1], "#")
			name := path.Join(path.Dir(d.path), to)
			if to == "" {
				name = d.path
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(name))); err != nil {
				t.Errorf("%s links to %s: %v", d.path, m[1], err)
			} else if at != "" && !slices.Contains(anchors[name], at) {
				t.Errorf("%s links to %s: there is no such heading", d.path, m[1])
			}
		}
	}
}

// anchor returns the anchor that GitHub makes of a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(heading) {
		switch {
		case c == ' ':
			b.WriteByte('-')
		case c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		}
	}
	return b.String()
}

// TestTree: the tree in architecture.md has every package, none that is gone,
// and floors of which each package imports only lower ones. The packages that it
// calls the library have examples.
func TestTree(t *testing.T) {
	r := readTree(t)
	b, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(b), "## The tree\n\n```\n")
	block, _, _ = strings.Cut(block, "```")
	floor := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z/]*)/ +(\d*) `).FindAllStringSubmatch(block, -1) {
		if floor[m[1]], err = strconv.Atoi(m[2]); err != nil {
			floor[m[1]] = 1 << 10 // a test: above all
		}
		if !r.files[m[1]] {
			t.Errorf("the tree has %s, which is not there", m[1])
		}
	}
	if len(floor) < 10 {
		t.Fatalf("the tree has only %d packages", len(floor))
	}
	for dir := range r.in {
		if _, named := floor[dir]; r.files[dir] && !named && dir != "docs" {
			t.Errorf("the tree does not have %s", dir)
		}
	}
	library, _, _ := strings.Cut(string(b), "are the library")
	library = library[strings.LastIndex(library, "\n\n")+1:]
	names := code.FindAllStringSubmatch(library, -1)
	if len(names) < 6 {
		t.Errorf("the library has only %d packages", len(names))
	}
	for _, m := range names {
		if !r.hasTest(m[1], regexp.MustCompile("^Example")) {
			t.Errorf("package %s has no example", m[1])
		}
	}
	for dir, imports := range r.imports {
		for _, i := range imports {
			if floor[i] >= floor[dir] {
				t.Errorf("in the tree %s lies on floor %d and imports %s, on floor %d", dir, floor[dir], i, floor[i])
			}
		}
	}
}

// TestGlossary: each word that the glossary explains is one that the code uses,
// and has an example.
func TestGlossary(t *testing.T) {
	b, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for name := range readTree(t).files {
		if strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "docs/") {
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	all := strings.ToLower(sources.String())
	entries := 0
	for _, paragraph := range strings.Split(string(b), "\n\n") {
		if !strings.HasPrefix(paragraph, "**") {
			continue
		}
		entries++
		terms, _, _ := strings.Cut(paragraph[2:], "**")
		for _, term := range strings.Split(terms, ", ") {
			if !strings.Contains(all, strings.ToLower(strings.Trim(term, "`"))) {
				t.Errorf("the glossary explains %q, which no Go file has", term)
			}
		}
		if !strings.Contains(paragraph, "*Example*:") {
			t.Errorf("%s: no example", terms)
		}
	}
	if entries < 40 {
		t.Errorf("only %d entries", entries)
	}
}
