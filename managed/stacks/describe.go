package stacks

import (
	"path"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A describer describes stacks, one at a time, on one goroutine.
type describer struct {
	s      *Stacks
	places map[placeKey]*place
	counts Counts    // of the stack so far
	lack   []*place  // of the stack so far, that lack something
	last   arch.PC   // of the frame before
	role   code.Role // that a function of the stack so far tells
	shown  int       // frames of the stack that are kept, without gaps
	spare  []Frame   // room for the next stack
}

// A placeKey is what the description of a frame depends on, but for its stack
// pointer.
type placeKey struct {
	pc      arch.PC
	method  arch.Addr
	kind    managed.Kind
	faulted bool // an explicit Frame alone says that it was interrupted
}

// faulted reports whether an explicit Frame alone says that f was interrupted.
func faulted(f *managed.Frame) bool {
	return f.PC.Exact && f.By == unwind.ByExplicitFrame
}

// A place is the description of a pc, and the files that would have had a name or
// a line for it if there is none.
type place struct {
	*Place
	role     code.Role
	lacks    *loader.Image
	lacksPDB *loader.PDB
	frames   int // of the stack so far that stand here, if it lacks something
}

// maxPlaces bounds the places that a describer remembers. The stacks of a large
// server stand at some thousand; those of a forged dump could all differ.
const maxPlaces = 1 << 16

func (s *Stacks) describer() *describer {
	return &describer{s: s, places: map[placeKey]*place{}}
}

// begin begins to describe out's stack, with room for its frames.
func (d *describer) begin(out *Thread, room []Frame) {
	out.Frames, out.Omitted = room[:0], Omitted{}
	d.forget()
	d.shown = 0
}

// frame describes the next frame of a stack.
func (d *describer) frame(f *managed.Frame) Frame {
	last := d.last
	d.last = f.PC
	if f.Kind == managed.Gap {
		d.counts.Gaps++
		d.s.need(f.Why)
		why := d.s.stop(f.Why)
		return Frame{Place: &Place{Kind: Gap, Why: &why}}
	}
	if d.counts.Frames++; f.Kind == managed.Managed {
		d.counts.Managed++
	}
	p := d.place(f)
	if p.role != code.RoleUnknown {
		d.role = p.role
	}
	if p.lacks != nil || p.lacksPDB != nil {
		if p.frames++; p.frames == 1 {
			d.lack = append(d.lack, p)
		}
	}
	if p.Function == "" {
		d.counts.Unnamed++
	}
	if f.By == unwind.ByDebugFrame {
		d.s.leftByDebugFrame(last)
	}
	return Frame{PC: f.PC, SP: f.SP, By: f.By.String(), Place: p.Place}
}

// guarded is frame for who does not guard himself (see [loader.Process.Guard]).
// A frame has no name if a file was cut that the name would be read from.
func (d *describer) guarded(f *managed.Frame) Frame {
	if f.Kind == managed.Gap { // nothing is read for it
		return d.frame(f)
	}
	out := Frame{PC: f.PC, SP: f.SP, By: f.By.String(), Place: &Place{Kind: Kind(f.Kind.String())}}
	d.s.session.Process.GuardRetry(func() { out = d.frame(f) })
	return out
}

// place describes the code that f stands at.
func (d *describer) place(f *managed.Frame) *place {
	k := placeKey{f.PC, f.Code.Method, f.Kind, faulted(f)}
	p, known := d.places[k]
	if known {
		return p
	}
	p = new(place)
	if f.Kind == managed.Managed {
		*p = d.s.managedPlace(f)
	} else {
		*p = d.s.nativePlace(f)
	}
	if len(d.places) >= maxPlaces {
		clear(d.places)
	}
	d.places[k] = p
	return p
}

// end ends the stack of out.
func (d *describer) end(out *Thread, stop unwind.Stop) {
	s := d.s
	if out.Stop = s.stop(stop); out.Role == code.RoleUnknown {
		out.Role = d.role
	}
	if d.counts.Threads++; !out.Stop.Complete {
		s.need(stop)
	}
	switch {
	case d.counts.Gaps > 0:
		d.counts.Gapped++
	case out.Stop.Complete:
		d.counts.Whole++
	}
	s.mu.Lock()
	s.counts.add(d.counts)
	s.lacking(d.lack)
	s.mu.Unlock()
	d.forget()
}

// forget forgets what was counted of a stack.
func (d *describer) forget() {
	d.counts, d.last, d.role = Counts{}, arch.PC{}, code.RoleUnknown
	for _, p := range d.lack {
		p.frames = 0
	}
	d.lack = d.lack[:0]
}

// nativePlace describes where a native frame stands.
func (s *Stacks) nativePlace(f *managed.Frame) place {
	o := &Place{Kind: Native}
	if f.Code.Kind == code.Stub {
		// A stub that the runtime made has no symbol; what it is for is the name.
		o.Function = f.Code.Stub.String()
		if start := f.Code.Start; start != 0 && f.PC.Addr >= start {
			o.Offset = uint64(f.PC.Addr - start)
		}
		return place{Place: o}
	}
	var img, lacks *loader.Image
	if s.symbols == nil {
		img = s.session.Process.ImageAt(f.PC.Lookup())
	} else {
		var n symbolize.Name
		img, n = s.symbols.Native(f.PC)
		o.Function, o.Symbol, o.Offset = n.Function, n.Symbol, n.Offset
		if n.Function == "" {
			lacks = img
		}
	}
	if img != nil {
		if img.Format != "pe" || !s.mayBeManaged(f.PC.Lookup()) {
			o.Module = img.ID.Name
		}
		o.Link = arch.LinkAddr(uint64(f.PC.Addr) - img.Bias())
	}
	return place{Place: o, role: roleOf(o.Function), lacks: lacks}
}

// ilOffset returns the byte of its method's IL that f stands at, -1 where that is not
// known. The Frame of a fault leads to the place of the fault, but of one in a write
// barrier or in a stub to what called that. Behind a call, nothing in the Frame tells
// the two apart.
func (s *Stacks) ilOffset(rt code.Mapping, f *managed.Frame) int64 {
	il, ok := rt.ILOffset(f.PC)
	if ok && faulted(f) && s.session.Process.Arch.AfterCall(s.session.Process.Memory, f.PC.Addr) {
		called, known := rt.ILOffset(arch.PC{Addr: f.PC.Addr})
		ok = known && called == il
	}
	if !ok {
		return -1
	}
	return int64(il)
}

// mayBeManaged reports whether a runtime cannot say if the code at pc is its own,
// because bytes are missing. In an image of code that was compiled ahead of time it
// then is a method of any assembly: see managedPlace.
func (s *Stacks) mayBeManaged(pc arch.Addr) bool {
	return slices.ContainsFunc(s.session.Runtimes, func(rt code.Runtime) bool {
		_, missing := rt.Lookup(pc)
		return missing != 0
	})
}

// managedPlace describes where a managed frame stands.
func (s *Stacks) managedPlace(f *managed.Frame) place {
	m := &Method{ID: f.Code.Method, Funclet: f.Code.Funclet, FuncletKnown: f.Code.FuncletKnown, ILOffset: -1}
	if f.Code.Kind != code.NotManaged { // of a stack trace the code may be gone
		m.Code = f.Code.Kind.String()
	}
	o := &Place{Kind: Managed, Method: m}
	if rt, ok := f.Runtime.(code.Mapping); ok {
		m.ILOffset = s.ilOffset(rt, f)
	}
	if start := f.Code.Start; f.PC.Addr >= start {
		o.Offset = uint64(f.PC.Addr - start)
	}
	img := s.session.Process.ImageAt(f.PC.Lookup())
	n := s.name(f.Runtime, &f.Code)
	if n.unknown {
		// The image of the code need not be the method's: a composite image has
		// code of many assemblies, and any image has instantiations of others'
		// generic methods.
		return place{Place: o, lacks: img}
	}
	o.Function, o.Module = n.function, n.module
	m.Name, m.Token = n.m.Name, n.m.Token
	if n.m.ILStub {
		m.Code = "stub"
	}
	var lacksPDB *loader.PDB
	if s.lines != nil {
		lacksPDB = s.lines.line(o, &n.m)
	}
	o.Inlined = s.inlined(f)
	if o.Function != "" || n.m.Token == 0 { // without a token no file has a name for it
		return place{Place: o, lacksPDB: lacksPDB}
	}
	if def := s.imageNamed(n.m.Module); def != nil {
		img = def // the image that holds the name, not the one that holds the code
	}
	return place{Place: o, lacks: img, lacksPDB: lacksPDB}
}

// inlined describes the calls that were inlined where f stands. What is missing for
// their names and lines counts with f.
func (s *Stacks) inlined(f *managed.Frame) (calls []*Place) {
	rt, ok := f.Runtime.(code.Inlining)
	if !ok {
		return nil
	}
	for _, c := range rt.Inlined(f.PC, &f.Code) {
		n := s.name(f.Runtime, &code.Code{Kind: code.JIT, Method: c.Method})
		o := &Place{Kind: Inline, Function: n.function, Module: n.module}
		o.Method = &Method{ID: c.Method, Token: n.m.Token, Name: n.m.Name, ILOffset: int64(c.ILOffset), FuncletKnown: true, Code: code.JIT.String()}
		if s.lines != nil {
			s.lines.line(o, &n.m)
		}
		calls = append(calls, o)
	}
	return calls
}

// imageNamed returns the image that file is the path or the name of, or nil.
func (s *Stacks) imageNamed(file string) *loader.Image {
	if file == "" {
		return nil
	}
	for _, m := range s.session.Process.Images {
		if m.Path == file || m.ID.Name == file {
			return m
		}
	}
	return nil
}

// baseName returns the last part of a path of any system.
func baseName(p string) string {
	if n := strings.LastIndexByte(p, '\\'); n >= 0 {
		p = p[n+1:]
	}
	if p == "" {
		return ""
	}
	return path.Base(p)
}
