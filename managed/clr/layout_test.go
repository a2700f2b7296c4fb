package clr

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestRows: each fact of the table says where it was seen and what is checked
// before it is believed, and that check is a function of this package. Rows are in
// order, and none has a fact twice.
func TestRows(t *testing.T) {
	functions := declared(t)
	for i, row := range releases {
		if i > 0 && row.major >= releases[i-1].major {
			t.Errorf("%d comes behind %d", row.major, releases[i-1].major)
		}
		seen := map[string]bool{}
		for _, f := range row.facts {
			if seen[f.name] {
				t.Errorf("%d has %s twice", row.major, f.name)
			}
			seen[f.name] = true
			if typ, field, ok := strings.Cut(f.name, "."); !ok || typ == "" || field == "" || f.seen == "" {
				t.Errorf("%d: %+v", row.major, f)
			}
			if f.check == "" && len(f.beside) == 0 {
				t.Errorf("%d: %s is believed without a check", row.major, f.name)
			}
			if f.check != "" && !functions[f.check] {
				t.Errorf("%d: %s is checked by %s, which this package does not have", row.major, f.name, f.check)
			}
		}
	}
}

// declared returns the names of the functions and methods of this package.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// TestRowAgainstDescriptors holds the row of .NET 10 against the descriptors of its
// builds: a fact that they give lies where they have it, and what they do not give
// is believed beside what they do.
func TestRowAgainstDescriptors(t *testing.T) {
	texts, err := fs.Glob(layouts, "layouts/net10-*.json")
	if err != nil || len(texts) < 3 {
		t.Fatalf("%v, %v", texts, err)
	}
	row, _ := releaseOf("10.0.12")
	for _, name := range texts {
		text, err := layouts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseContract(text, make([]uint64, maxPointers))
		if err != nil {
			t.Fatal(err)
		}
		given := 0
		for _, f := range row.facts {
			if at, ok := c.offsets[f.name]; ok {
				if given++; at != f.at {
					t.Errorf("%s has %s at %d, and the row at %d", name, f.name, at, f.at)
				}
			}
		}
		for number, v := range row.numbers {
			if g, ok := c.global(number); ok && g != v {
				t.Errorf("%s has %s as %d, and the row as %d", name, number, g, v)
			}
		}
		for _, use := range []rowUse{ownRow, lentRow} {
			if refused := row.lay(copied(c), use); len(refused) > 0 {
				t.Errorf("%s: %v are not believed, use %d", name, refused, use)
			}
		}
		if given < 10 {
			t.Errorf("%s gives %d facts of the row", name, given)
		}
	}
}

// copied returns a copy of c that can be laid over a row by itself.
func copied(c *contract) *contract {
	return &contract{offsets: maps.Clone(c.offsets), globals: maps.Clone(c.globals), contracts: c.contracts}
}

// TestLay: a descriptor goes before the row. A fact whose neighbour lies elsewhere
// is refused and named among what is lacking; so is, for a release newer than the
// row, one whose neighbour the descriptor does not give.
func TestLay(t *testing.T) {
	open := func(version string, change func(c *contract)) *Runtime {
		r := fakeRuntime(t, nil)
		r.data, r.Version = fakeContract(t), version
		change(r.data)
		if err := r.layouts(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, test := range []struct {
		what, version string
		change        func(c *contract)
		lacks         []string
		datum, list   int
	}{
		{"as it is", "10.0.12", func(*contract) {}, nil, 16, 48},
		{"newer", "11.0.0", func(*contract) {}, nil, 16, 48},
		{"given", "10.0.12", func(c *contract) { c.offsets["InlinedCallFrame.Datum"] = 24 }, nil, 24, 48},
		{"another neighbour", "10.0.12", func(c *contract) { c.offsets["InlinedCallFrame.CallSiteSP"] = 32 }, []string{"InlinedCallFrame.Datum"}, nowhere, 48},
		{"another neighbour of an optional field", "10.0.12", func(c *contract) { c.offsets["RangeSection.HeapList"] = 48 }, []string{"RangeSection.RangeList"}, 16, -1},
		{"newer without a neighbour", "11.0.0", func(c *contract) { delete(c.offsets, "InlinedCallFrame.CallSiteSP") },
			[]string{"InlinedCallFrame.CallSiteSP", "InlinedCallFrame.Datum"}, nowhere, 48},
		{"a link elsewhere", "10.0.12", func(c *contract) { c.offsets["Thread.LinkNext"] = 1000 }, nil, 16, 48},
	} {
		r := open(test.version, test.change)
		if !slices.Equal(r.Lacks, test.lacks) || r.replayFrames.Datum != test.datum || r.codeLayout.SecList != test.list {
			t.Errorf("%s: lacking %v, want %v; Datum at %d, want %d; RangeList at %d, want %d",
				test.what, r.Lacks, test.lacks, r.replayFrames.Datum, test.datum, r.codeLayout.SecList, test.list)
		}
		if l := &r.threadLayout; l.StackBase != l.Link+8 || l.HijackSlot != l.Link+48 || l.NoSuspend != l.Link-56 {
			t.Errorf("%s: %+v", test.what, *l)
		}
	}
}

// TestReleaseAsRow reads a dump by a row that has all fields of its descriptor, and
// by a descriptor that has none of them, as a release without one is to be added:
// threads, methods, names and Frames are the same.
func TestReleaseAsRow(t *testing.T) {
	for _, name := range []string{"net10-hello", "net10-hello-arm64", "net10-scenarios"} {
		p, err := loader.Open(filepath.Join("..", "..", "testdata", "dumps", name, "core.zst"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, warns := Open(p)
		if len(rts) != 1 || len(warns) > 0 {
			t.Fatalf("%s: %d runtimes, %v", name, len(rts), warns)
		}
		want := rts[0]
		whole, err := want.descriptor()
		if err != nil {
			t.Fatal(err)
		}
		bare := &contract{offsets: map[string]int{}, globals: whole.globals, contracts: whole.contracts}
		made := release{major: 10, facts: slices.Clone(facts10), stubs: stubs10, debugInfo: outerFlags10, bounds: boundsBits2, hijackResumes: true, losesXState: true}
		for i := range made.facts {
			made.facts[i].beside = nil
		}
		var given []fact
		for name, at := range whole.offsets {
			if !slices.ContainsFunc(made.facts, func(f fact) bool { return f.name == name }) {
				given = append(given, fact{name: name, at: at})
			}
		}
		made.facts = append(given, made.facts...) // others count from some of them
		defer func(was []release) { releases = was }(releases)
		releases = []release{made}
		got := newRuntime(p, want.Image, "table")
		got.Version = want.Version
		got.data = bare
		if err := got.layouts(); err != nil || len(got.Lacks) > 0 {
			t.Fatalf("%s: %v, lacking %v", name, err, got.Lacks)
		}
		sameReading(t, name, got, want)
	}
}

// TestDacTable reads recorded dumps as one of a build that is in no table: by the
// addresses in g_dacTable and the layouts of its release. All is as by the table
// of builds, or by the descriptor, as far as there is one.
func TestDacTable(t *testing.T) {
	for _, name := range []string{"net10-hello-x64/normal", "net10-hello-arm64/dump", "net10-busy-x64/a/dump", "net9-callbacks-x64/dump"} {
		p, err := loader.Open(corpus.Path(t, filepath.Dir(name), filepath.Base(name)+".zst"), &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, warns := Open(p)
		if len(rts) != 1 || rts[0].How == "table" {
			t.Fatalf("%s: %v", name, warns)
		}
		got := byDacTable(p, rts[0].Image, nil)
		if got == nil {
			t.Errorf("%s: not read by its table of variables", name)
			continue
		}
		sameReading(t, name, got, rts[0])
	}
}

// TestUnknownBuild reads recorded dumps as those of a build that no table knows and
// whose file is not at hand, so that nothing tells its release: that of .NET 8 and of
// 9 are told apart by what their tables of variables lead to.
func TestUnknownBuild(t *testing.T) {
	for name, version := range map[string]string{
		"net10-hello-x64/normal": "10.0", "net10-hello-arm64/dump": "10.0", "net9-transitions-x64/dump": "9.0", "net9-callbacks-x64/dump": "9.0",
		"net8-transitions-x64/dump": "8.0", "net8-callbacks-x64/dump": "8.0",
	} {
		p, err := loader.Open(corpus.Path(t, filepath.Dir(name), filepath.Base(name)+".zst"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, warns := Open(p)
		if len(rts) != 1 {
			t.Fatalf("%s: %v", name, warns)
		}
		id := &rts[0].Image.ID
		was := *id
		id.BuildID = strings.Repeat("0", len(id.BuildID))
		got := byDacTable(p, rts[0].Image, nil)
		*id = was
		if got == nil || got.Version != version || len(got.Lacks) > 0 || got.How != "table" {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		sameReading(t, name, got, rts[0])
	}
}

// sameReading holds all that two runtimes read of one process against each other.
func sameReading(t *testing.T, name string, got, want *Runtime) {
	t.Helper()
	type reading struct {
		Threads    []code.Thread
		Frames     []Frame
		Exceptions []*code.Exception
		Methods    []code.Compiled
		Names      []string
	}
	read := func(r *Runtime) (all reading) {
		all.Threads, _ = r.Threads()
		for i := range all.Threads {
			all.Exceptions = append(all.Exceptions, r.InFlight(&all.Threads[i]))
			for a := all.Threads[i].Frame; a != code.EndOfFrames; {
				f, ok := r.frameAt(a)
				if !ok || f.Next <= a {
					break
				}
				all.Frames = append(all.Frames, f)
				a = f.Next
			}
		}
		r.Compiled(func(m code.Compiled) bool {
			all.Methods = append(all.Methods, m)
			d, _ := r.MethodAt(m.ID)
			all.Names = append(all.Names, d.Module+" "+d.Name)
			return true
		})
		return all
	}
	a, b := read(got), read(want)
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("%s: %s", name, d)
	}
	if len(b.Threads) == 0 || len(b.Frames) == 0 || len(b.Methods) == 0 {
		t.Errorf("%s: %d threads, %d Frames, %d methods", name, len(b.Threads), len(b.Frames), len(b.Methods))
	}
}

// TestBuildKey: builds are known by their build-id, or by timestamp and size.
func TestBuildKey(t *testing.T) {
	for want, id := range map[string]loader.ImageID{
		"79945f51fb2612f13b7667a10a8fd29122664791": {BuildID: "79945f51fb2612f13b7667a10a8fd29122664791"},
		"6A89B72447a000": {Timestamp: 0x6a89b724, Size: 0x47a000},
		"":               {Timestamp: 0x6a89b724},
	} {
		row, err := knownBuild(&id)
		if got := buildKey(&id); got != want || err != nil || (row != nil) != (want != "") {
			t.Errorf("%+v: %q, want %q; a row: %v, %v", id, got, want, row != nil, err)
		}
	}
}

// TestParseVersion reads the text that has a runtime's version, whole and cut.
func TestParseVersion(t *testing.T) {
	for text, want := range map[string][2]string{
		"10.0.1226.42308 @Commit: 901ca941a9c0\x00":   {"10.0.12", "901ca941a9c0"},
		"9.0.725.31616 @Commit: 3c298d9f00936d65\n":   {"9.0.7", "3c298d9f00936d65"},
		"4.700.20.6602 @Commit: fd22fd600a2526a7\x00": {"4.700.0", "fd22fd600a2526a7"},
		"9.0.725.31616\x00":                           {"9.0.7", ""},
		"9.0.725.31616 @Commit: none\x00":             {"9.0.7", ""},
		"9.0.725.31616 @Commit: 3c298d9f":             {}, // it does not end
		"9.0\x00":                                     {},
		"9.x.725.1\x00":                               {},
		"":                                            {},
	} {
		if v, c := parseVersion([]byte(text)); v != want[0] || c != want[1] {
			t.Errorf("%q: %q %q, want %q", text, v, c, want)
		}
	}
}

// TestTrimmedUnknownBuild: a trimmed dump has the descriptor that .NET 9's file gave,
// and not the version. That descriptor says where threads lie, whichever release the
// rest is taken from, so that it must be held against the row.
func TestTrimmedUnknownBuild(t *testing.T) {
	r := readFixture(t, "net9-transitions").edited(nil)
	own, err := r.descriptor()
	if own == nil {
		t.Fatalf("the dump has no descriptor: %v", err)
	}
	was := r.Image.ID.BuildID
	r.Image.ID.BuildID = strings.Repeat("0", len(was))
	got := byDacTable(r.proc, r.Image, own)
	r.Image.ID.BuildID = was
	if got == nil || got.Version != "9.0" || len(got.Lacks) > 0 {
		t.Fatalf("not read as .NET 9 (read at all: %v)", got != nil)
	}
	sameReading(t, "net9-transitions", got, r)
}
