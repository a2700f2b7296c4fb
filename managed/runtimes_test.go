package managed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/stacks"
)

// A table is a runtime that knows the code of a process by a list of ranges and
// names, sorted by address, as in a perf map or a linker's map.
type table []entry

type entry struct {
	span arch.Span
	name string
}

// tables returns a line for the table of runtimes that finds t in any process.
func tables(t *table) []code.Finder {
	return []code.Finder{func(*loader.Process) ([]code.Runtime, []loader.Warning) {
		return []code.Runtime{t}, nil
	}}
}

func (t *table) Info() code.Info { return code.Info{Kind: "table"} }

func (t *table) Lookup(pc arch.Addr) (c code.Code, missing arch.Addr) {
	if e := t.at(pc); e != nil {
		c = code.Code{Kind: code.JIT, Start: e.span.Lo, Body: e.span}
	}
	return c, 0
}

func (t *table) Describe(c *code.Code) (code.Method, error) {
	e := t.at(c.Start)
	if e == nil {
		return code.Method{}, code.ErrNoMethod
	}
	return code.Method{Name: e.name, Verbatim: true}, nil
}

func (t *table) Compiled(yield func(code.Compiled) bool) {
	for _, e := range *t {
		if !yield(code.Compiled{Span: e.span, Name: e.name, Source: "table"}) {
			return
		}
	}
}

// at returns the entry that holds a, or nil.
func (t *table) at(a arch.Addr) *entry {
	i, ok := slices.BinarySearchFunc(*t, a, func(e entry, a arch.Addr) int {
		switch {
		case e.span.Hi <= a:
			return -1
		case e.span.Lo > a:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &(*t)[i]
}

// A place is where a frame is: of two walks of one stack, frames are told apart by it.
type place struct {
	tid uint32
	pc  arch.Addr
	sp  arch.Addr
}

// TestSecondRuntime walks and names the methods of a CoreCLR that cannot be read by
// a table of them, as a perf map of the process would have it. What is said with
// the table is held against what is said of the whole dump.
func TestSecondRuntime(t *testing.T) {
	const path = "../testdata/dumps/net10-hello/core.zst"
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	whole := managed.Open(p, nil)
	perf := perfMap(whole)
	want := managedNames(whole)

	broken := unreadable(t, path, whole.Runtimes[0].Info().Image.ID.BuildID)
	p, err = loader.Open(broken, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if s := managed.Open(p, nil); len(s.Runtimes) > 0 || len(managedNames(s)) > 0 {
		t.Fatal("a runtime is read that should not be")
	}
	s := managed.Open(p, &managed.Options{Runtimes: tables(&perf)})
	found := 0
	for at, name := range managedNames(s) {
		full, ok := want[at]
		if !ok || full != name {
			t.Errorf("thread %d: the frame at %v, stack pointer %v, is %s; want %q", at.tid, at.pc, at.sp, name, full)
		}
		found++
	}
	jitted := 0 // ReadyToRun code is in no table of what was compiled
	for at := range want {
		if perf.at(at.pc-1) != nil {
			jitted++
		}
	}
	// The rest lies behind gaps that only the CoreCLR's explicit Frames lead over.
	t.Logf("%d of %d frames of JIT-compiled methods are walked and named", found, jitted)
	if found < 38 || jitted < 51 {
		t.Error("frames are lost")
	}
	listed(t, s, perf)
	shown(t, s, perf)
}

// perfMap returns the methods that the runtimes of s have compiled, with names.
func perfMap(s *managed.Session) (perf table) {
	for _, m := range s.Methods() {
		if m.Kind == code.CompiledStub {
			continue
		}
		c := m.Code()
		d, _ := m.Runtime.Describe(&c) // the dump lacks some names
		perf = append(perf, entry{m.Span, d.Name})
	}
	return perf
}

// managedNames walks every thread of s and names its managed frames.
func managedNames(s *managed.Session) map[place]string {
	names := map[place]string{}
	w := s.NewWalker()
	for i := range s.Process.Threads {
		th := &s.Process.Threads[i]
		for ok := w.Start(th); ok; ok = w.Next() {
			if f := w.Frame(); f.Kind == managed.Managed {
				m, _ := f.Runtime.Describe(&f.Code)
				names[place{th.ID, f.PC.Addr, f.SP}] = m.Name
			}
		}
	}
	return names
}

// unreadable writes a copy of a dump whose CoreCLR cannot be read: nobody knows its
// build, and its descriptor is of no version that there is.
func unreadable(t *testing.T, path, buildID string) string {
	t.Helper()
	c, err := coreedit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for was, by := range map[string][]byte{
		buildID:        bytes.Repeat([]byte("ab"), len(buildID)/2),
		`{"version":0`: []byte(`{"version":7`),
	} {
		if c.Replace([]byte(was), by) == 0 {
			t.Fatalf("the dump does not hold %q", was)
		}
	}
	out := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(out, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// listed holds the session's list of methods against the table that it comes of.
func listed(t *testing.T, s *managed.Session, perf table) {
	t.Helper()
	list := s.Methods()
	if len(list) != len(perf) {
		t.Fatalf("%d methods, want %d", len(list), len(perf))
	}
	for i, m := range list {
		if m.Span != perf[i].span || m.Name != perf[i].name || m.Runtime != s.Runtimes[0] {
			t.Fatalf("method %d is %+v, want %+v", i, m, perf[i])
		}
		if at, ok := s.MethodAt(m.Span.Hi - 1); !ok || at != m {
			t.Fatalf("at the last byte of %+v is %+v", m, at)
		}
	}
	if _, ok := s.MethodAt(list[len(list)-1].Span.Hi); ok {
		t.Error("behind the last method is a method")
	}
}

// shown looks for the table's names in the stacks that people read.
func shown(t *testing.T, s *managed.Session, perf table) {
	t.Helper()
	names := map[string]bool{}
	for _, e := range perf {
		names[e.name] = true
	}
	n := 0
	for thread, err := range stacks.Of(s, nil).All() {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range thread.Frames {
			if f.Place == nil || f.Place.Kind != stacks.Managed {
				continue
			}
			if n++; !names[f.Place.Function] {
				t.Errorf("thread %d: a managed frame is called %q", thread.TID, f.Place.Function)
			}
		}
	}
	if n == 0 {
		t.Error("no managed frame is shown")
	}
}
