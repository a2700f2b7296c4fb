package stacks

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// An inliner is a CoreCLR that has kept what it inlined: everywhere the method that
// it is told.
type inliner struct {
	*clr.Runtime
	calls []code.Inlined
}

func (r *inliner) Inlined(arch.PC, *code.Code) []code.Inlined { return r.calls }

// TestRecordedInlined: a process that was asked to keep which calls were inlined stands
// in one of them. Its source says which lines the calls are in.
func TestRecordedInlined(t *testing.T) {
	const dump = "testdata/inlined/core.zst"
	p, err := loader.Open(dump, &loader.Options{Find: loader.BesideFinder(dump)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := Of(managed.Open(p, nil), nil)
	w := s.session.NewWalker()
	type shown struct {
		kind     Kind
		function string
		line     int
	}
	var got []shown
	for ok := w.Start(&p.Threads[0]); ok; ok = w.Next() {
		place := s.Place(w.Frame())
		for _, call := range place.Inlined {
			got = append(got, shown{call.Kind, call.Function, call.Line})
		}
		if place.Module == "inlined.dll" {
			got = append(got, shown{place.Kind, place.Function, place.Line})
		}
	}
	want := []shown{
		{Managed, "Program.Park()", 15},
		{Inline, "Program.Inner(int)", 22}, {Inline, "Program.Middle(int)", 30}, {Managed, "Program.Outer(int)", 36},
		{Managed, "Program.Main(string[])", 42},
	}
	if !slices.Equal(got, want) || !w.Stop().Reason.Complete() {
		t.Errorf("%+v, %v; want %+v", got, w.Stop().Reason, want)
	}
}

// Inlined calls have names and lines as frames do, the innermost first. A recorded
// process has kept none here: the runtime is told some.
func TestInlined(t *testing.T) {
	const dump = "../../testdata/dumps/net10-hello/core.zst"
	p, err := loader.Open(dump, &loader.Options{Find: loader.BesideFinder(dump)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := Of(managed.Open(p, nil), nil)
	byLine := map[int]*Method{}
	var at managed.Frame
	w := s.session.NewWalker()
	for i := range p.Threads {
		for ok := w.Start(&p.Threads[i]); ok; ok = w.Next() {
			if place := s.Place(w.Frame()); place.Line > 0 {
				byLine[place.Line] = place.Method
				at = *w.Frame()
			}
		}
	}
	inner, outer := byLine[254], byLine[259] // Generic<..>.Nested<..>.Call, Parker.Go
	if inner == nil || outer == nil {
		t.Fatalf("frames at %d lines", len(byLine))
	}
	own := at.Runtime.(*clr.Runtime)
	if got := s.Place(&at).Inlined; got != nil {
		t.Errorf("inlined where nothing was kept: %+v", got[0])
	}
	at.Runtime = &inliner{own, []code.Inlined{{Method: inner.ID, ILOffset: 0}, {Method: outer.ID, ILOffset: 0}, {Method: 0x10}}}
	got := s.Place(&at).Inlined
	if len(got) != 3 {
		t.Fatalf("%d calls", len(got))
	}
	for i, want := range []Place{
		{Module: "scenarios.dll", Function: "Generic<__Canon>.Nested<System.Guid>.Call<System.DateTime>(T, V, W)", File: "/src/Scenarios.cs", Line: 254, Method: inner},
		{Module: "scenarios.dll", Function: "Parker.Go()", File: "/src/Scenarios.cs", Line: 259, Method: outer},
		{Method: &Method{ID: 0x10}},
	} {
		g := got[i]
		if g.Kind != Inline || g.Module != want.Module || g.Function != want.Function || g.File != want.File || g.Line != want.Line ||
			g.Method.ID != want.Method.ID || g.Method.Name != want.Method.Name || g.Method.Token != want.Method.Token || g.Inlined != nil {
			t.Errorf("call %d: %+v, %+v; want %+v", i, g, g.Method, want)
		}
	}
}

// A lostRuntime lacks the bytes that would say whose code it is.
type lostRuntime struct{ *clr.Runtime }

func (lostRuntime) Lookup(arch.Addr) (code.Code, arch.Addr) { return code.Code{}, 0x1000 }

// The module of a frame is not known from where its code lies, if that may be a
// method: an image of code that was compiled ahead of time has those of many.
func TestModuleUnknown(t *testing.T) {
	p, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := Of(managed.Open(p, nil), &Options{NoSymbols: true})
	at := func(name string) managed.Frame {
		w := s.session.NewWalker()
		for i := range p.Threads {
			for ok := w.Start(&p.Threads[i]); ok; ok = w.Next() {
				if img := p.ImageAt(w.Frame().PC.Lookup()); img != nil && img.ID.Name == name {
					return managed.Frame{Kind: managed.Native, PC: w.Frame().PC}
				}
			}
		}
		t.Fatal("no frame in", name)
		return managed.Frame{}
	}
	lib, assembly := at("libc.so.6"), at("System.Private.CoreLib.dll")
	for _, lost := range []bool{false, true} {
		if lost {
			s.session.Runtimes = []code.Runtime{lostRuntime{}}
		}
		if got := s.Place(&lib).Module; got != "libc.so.6" {
			t.Errorf("lost %v: libc is %q", lost, got)
		}
		if got := s.Place(&assembly).Module; (got == "") != lost {
			t.Errorf("lost %v: code in CoreLib's image is of %q", lost, got)
		}
	}
	own := managed.Frame{Kind: managed.Managed, PC: assembly.PC, Runtime: lostRuntime{}, Code: code.Code{Kind: code.ReadyToRun}}
	if o := (&Stacks{session: s.session, methods: s.methods}).managedPlace(&own); o.Module != "" || o.Function != "" {
		t.Errorf("a method that is not known is %q of %q", o.Function, o.Module)
	}
}

func (lostRuntime) Describe(*code.Code) (code.Method, error) { return code.Method{}, code.ErrNoMethod }
func (lostRuntime) ILOffset(arch.PC) (uint32, bool)          { return 0, false }
