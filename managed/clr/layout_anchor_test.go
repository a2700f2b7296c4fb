package clr

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// openEdited opens a recorded dump, without any file of its images, as change makes
// it.
func openEdited(t *testing.T, name string, change func(c *coreedit.Core, table arch.Addr, entries int)) ([]*Runtime, []loader.Warning) {
	t.Helper()
	path := corpus.Path(t, filepath.Dir(name), filepath.Base(name)+".zst")
	if change != nil {
		whole, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		var at arch.Addr
		var size uint64
		for _, img := range candidates(whole) {
			at, size, _ = img.Lookup(dacTableSymbol)
		}
		core, err := coreedit.Read(path)
		if err != nil || size == 0 {
			t.Fatal(err, size)
		}
		change(core, at, int(size/8))
		path = filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, core.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return Open(p)
}

// TestAnchor moves the entries of g_dacTable, as another build of the release has
// them. Where it is found again all is read as before; where it cannot be, the
// runtime is refused.
func TestAnchor(t *testing.T) {
	const name = "net9-scenarios-x64/normal"
	rts, warns := openEdited(t, name, nil)
	if len(rts) != 1 || len(warns) > 0 {
		t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	want := rts[0]
	if len(want.Lacks) > 0 || want.Version != "9.0.20" || want.How != "table" {
		t.Errorf("version %s, by %s, lacking %v", want.Version, want.How, want.Lacks)
	}
	// moved puts the entries from first on by places further.
	moved := func(first, by int) func(c *coreedit.Core, table arch.Addr, n int) {
		return func(c *coreedit.Core, table arch.Addr, n int) {
			words := make([]uint64, n)
			for k := range words {
				words[k], _ = c.Word(uint64(table) + 8*uint64(k))
			}
			for k := range words {
				v := words[max(0, min(n-1, k-by))]
				if k < first {
					v = words[k]
				}
				if err := c.SetWord(uint64(table)+8*uint64(k), v); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, test := range []struct{ first, by int }{{0, 1}, {74, 1}, {86, 2}, {1, -1}, {30, -3}} {
		rts, warns := openEdited(t, name, moved(test.first, test.by))
		if len(rts) != 1 || len(warns) > 0 {
			t.Errorf("%+v: %d runtimes, %v", test, len(rts), warns)
			continue
		}
		sameReading(t, fmt.Sprintf("%+v", test), rts[0], want)
	}
	if rts, warns := openEdited(t, name, moved(0, 100)); len(rts) != 0 || len(warns) != 1 {
		t.Errorf("a table of another runtime: %d runtimes, %v", len(rts), warns)
	}
}

// TestWithoutCodeRanges: where no entry leads to the map of code, ReadyToRun code is
// found by its Modules, and other code is not found. What is not known is named.
func TestWithoutCodeRanges(t *testing.T) {
	dump := corpus.Path(t, "net9-scenarios-x64", "normal.zst")
	files := &loader.Options{Find: loader.DirFinder(corpus.Images(t))}
	p, err := loader.Open(dump, files)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rts, warns := Open(p)
	if len(rts) != 1 {
		t.Fatal(warns)
	}
	want := rts[0]
	core, err := coreedit.Read(dump)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := want.table.entry(1)
	if err := core.SetWord(uint64(want.table.at), uint64(other)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, core.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := loader.Open(path, files)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	rts, warns = Open(q)
	if len(rts) != 1 || !slices.Equal(rts[0].Lacks, []string{"Frame.Identifier", codeRanges}) {
		t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	got := rts[0]
	found := 0
	want.sections(func(s rangeSection) bool {
		for pc := s.span.Lo; pc < s.span.Hi; pc += 0x4001 {
			is, _ := want.CodeAt(pc)
			c, missing := got.CodeAt(pc)
			switch {
			case c.Kind == code.NotManaged && is.Kind != c.Kind && missing != want.table.at:
				t.Errorf("%v is no managed code, and nothing is missing", pc)
			case c.Kind == code.ReadyToRun && is.Kind == c.Kind && is.Body == c.Body && is.Method == c.Method:
				found++
			case c.Kind != code.NotManaged && c.Kind != is.Kind && c.Kind != code.Stub:
				t.Errorf("%v is %+v, and was %+v", pc, c, is)
			}
		}
		return true
	})
	if found < 100 {
		t.Errorf("%d places in ReadyToRun code are found", found)
	}
}

// TestLeadsToTypes: classes are taken for those of objects, strings and exceptions
// only if they derive from each other as those do.
func TestLeadsToTypes(t *testing.T) {
	rts, warns := openEdited(t, "net9-scenarios-x64/normal", nil)
	if len(rts) != 1 {
		t.Fatal(warns)
	}
	r := rts[0]
	if !r.leadsToTypes() {
		t.Error("the classes of the row are not believed")
	}
	object := r.data.globals["ObjectMethodTable"]
	r.data.globals["ObjectMethodTable"] = r.data.globals["StringMethodTable"]
	if r.leadsToTypes() {
		t.Error("a string was taken for an object")
	}
	r.data.globals["ObjectMethodTable"] = object
	delete(r.data.globals, "ExceptionMethodTable")
	if r.leadsToTypes() {
		t.Error("believed without exceptions")
	}
}

// TestOffsetOf: an image that was stopped while it was loaded does not outvote the
// others, and where none can tell nothing is said.
func TestOffsetOf(t *testing.T) {
	for _, test := range []struct {
		says []verdict
		want verdict
	}{
		{nil, unknown}, {[]verdict{unknown, unknown}, unknown}, {[]verdict{unknown, confirmed}, confirmed}, {[]verdict{refuted, unknown}, refuted},
		{[]verdict{confirmed, refuted, confirmed}, confirmed}, {[]verdict{confirmed, refuted}, refuted}, {[]verdict{refuted, confirmed, refuted}, refuted},
	} {
		n := -1
		got := offsetOf(make([]rangeSection, len(test.says)), 0, func(rangeSection, int) verdict { n++; return test.says[n] })
		if got != test.want {
			t.Errorf("%v: %v, want %v", test.says, got, test.want)
		}
	}
}

// TestDerive moves what a row says of ReadyToRun code, which the images of the
// process then correct.
func TestDerive(t *testing.T) {
	rts, warns := openEdited(t, "net9-scenarios-x64/normal", nil)
	if len(rts) != 1 {
		t.Fatal(warns)
	}
	r := rts[0]
	want := r.codeLayout
	for _, by := range []int{8, -16, 64} {
		r.codeLayout.ModuleR2R, r.codeLayout.R2REntries = want.ModuleR2R+by, want.R2REntries+by
		if lacks := r.derive(nil); len(lacks) > 0 || r.codeLayout != want {
			t.Errorf("moved by %d: at %d and %d, lacking %v; want %d and %d", by,
				r.codeLayout.ModuleR2R, r.codeLayout.R2REntries, lacks, want.ModuleR2R, want.R2REntries)
		}
	}
	r.codeLayout.ModuleR2R += 8
	own := &contract{offsets: map[string]int{"Module.ReadyToRunInfo": 0, "ReadyToRunInfo.EntryPointToMethodDescMap": 0}}
	if r.derive(own); r.codeLayout.ModuleR2R == want.ModuleR2R {
		t.Error("what the build's own descriptor says was changed")
	}
}

// FuzzDacTable overwrites words of g_dacTable, and moves the entries behind one of
// them: a runtime that is opened all the same knows no other code than it has, and
// its Frames lead nowhere else.
func FuzzDacTable(f *testing.F) {
	whole := readFixture(f, "net9-transitions")
	want := whole.edited(nil)
	at, size := want.table.at, want.table.entries
	var frames []Frame
	for _, thread := range threadsOf(f, want) {
		frames = append(frames, framesOf(want, &thread)...)
	}
	var pcs []arch.Addr
	want.Compiled(func(m code.Compiled) bool {
		pcs = append(pcs, m.Span.Lo)
		return len(pcs) < 50
	})
	if len(frames) < 10 || len(pcs) < 10 {
		f.Fatalf("%d Frames, %d methods", len(frames), len(pcs))
	}
	f.Add(uint16(0), uint64(0), uint16(0))
	f.Add(uint16(0), uint64(at), uint16(1))
	f.Add(uint16(137), uint64(at), uint16(130))
	f.Add(uint16(99), ^uint64(0), uint16(16))
	f.Fuzz(func(t *testing.T, k uint16, v uint64, from uint16) {
		core := whole.core.Clone()
		set := func(k int, v uint64) {
			if err := core.SetWord(uint64(at)+8*uint64(k), v); err != nil {
				t.Fatal(err)
			}
		}
		for i := size - 1; from > 0 && i > int(from); i-- {
			old, _ := core.Word(uint64(at) + 8*uint64(i-1))
			set(i, old)
		}
		set(int(k)%size, v)
		path := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, core.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, warns := Open(p)
		if len(rts) == 0 && len(warns) == 0 {
			t.Error("nothing is opened, and nothing said")
		}
		for _, r := range rts {
			for _, pc := range pcs {
				is, _ := want.CodeAt(pc)
				if c, _ := r.CodeAt(pc); c.Kind != code.NotManaged && c.Method != 0 && c.Method != is.Method {
					t.Errorf("%v is of %v, not %v", pc, c.Method, is.Method)
				}
			}
			for _, is := range frames {
				f, _ := r.frameAt(is.Addr)
				var got, to arch.Regs
				if _, ok := r.restore(f, &got); !ok {
					continue
				}
				if _, ok := want.restore(is, &to); !ok || got != to {
					t.Errorf("the Frame at %v is taken for a %v, and is a %v", is.Addr, f.Kind, is.Kind)
				}
			}
		}
	})
}
