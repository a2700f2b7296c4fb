package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// ilOffset returns the IL offset that the runtime's own stack traces have for pc in
// code c; see ilFinder. It is not ok for code without a map (stubs), and where the
// map's bytes are missing or not of the form that this runtime writes.
func (r *Runtime) ilOffset(c *Code, pc arch.PC) (off uint32, ok bool) {
	// Without the method's start, nothing is known of where in it pc lies; nor is it
	// in a cold part, which begins where the hot one ends.
	if c.Start == 0 || c.Cold || pc.Lookup() < c.Start {
		return 0, false
	}
	b, form, ok := r.bounds(c)
	if !ok {
		return 0, false
	}
	f := ilFinder{native: uint64(pc.Lookup() - c.Start), rule: r.release.ilRule}
	ok = form.read(b, f.entry)
	return f.offset(), ok
}

// A boundsForm is how a method's bounds are written: as nibbles, or as a
// stream of bits with so many for the source of an entry.
type boundsForm uint8

const (
	boundsNibbles boundsForm = 0 // JIT up to .NET 9, ReadyToRun images before 16.0
	boundsBits2   boundsForm = 2 // .NET 10, ReadyToRun 16
	boundsBits3   boundsForm = 3 // later
)

// An outerForm is what lies around the bounds of a method that the JIT
// compiled (src/coreclr/vm/debuginfostore.cpp).
type outerForm uint8

const (
	outerFlags9  outerForm = iota // a byte of flags; patchpoints of 32 bytes and 4 each
	outerFlags10                  // patchpoints have a pointer more, 40 bytes; bounds may be marked as instrumented
	outerCounts                   // counts only, or a zero and then more of them
)

// jitForms returns the forms of this runtime's JIT.
func (r *Runtime) jitForms() (outerForm, boundsForm) {
	if _, ok := r.data.contracts["DebugInfo"]; ok {
		return outerCounts, boundsBits3
	}
	return r.release.debugInfo, r.release.bounds
}

// maxBounds bounds a method's map in bytes; a method with 100,000 entries has
// a quarter of it.
const maxBounds = 1 << 20

// bounds returns the bytes of the map of c's method.
func (r *Runtime) bounds(c *Code) (b []byte, form boundsForm, ok bool) {
	var d chunk
	switch c.Kind {
	case code.JIT:
		var info debugChunks
		info, form, ok = r.jitDebug(c)
		d = info.bounds
	case code.ReadyToRun:
		d.at, d.n, form, ok = r.r2rBounds(c)
	}
	if !ok {
		return nil, 0, false
	}
	b = r.bytesOf(d)
	return b, form, b != nil
}

// A chunk is a part of the debug information of a method.
type chunk struct {
	at arch.Addr
	n  uint32
}

// bytesOf returns the bytes of d, nil if it has none or the dump lacks some.
func (r *Runtime) bytesOf(d chunk) []byte {
	if d.n == 0 || d.n > maxBounds {
		return nil
	}
	return r.linked(d.at, int(d.n))
}

// debugChunks are the parts of a method's debug information that are read: where
// its code came from, and what was inlined there.
type debugChunks struct{ bounds, rich chunk }

// jitDebug finds the debug information of c, which the JIT has compiled.
func (r *Runtime) jitDebug(c *Code) (d debugChunks, form boundsForm, ok bool) {
	info, ok := r.word(field(c.Header, r.names.HdrDebugInfo))
	if !ok || info == 0 {
		return d, 0, false
	}
	outer, form := r.jitForms()
	if outer == outerCounts {
		d, ok = r.countedChunks(arch.Addr(info))
	} else {
		d, ok = r.flaggedChunks(arch.Addr(info), outer)
	}
	return d, form, ok
}

// Flags of the byte that begins the debug information of .NET 8 to 10.
const (
	debugPatchpoints = 1
	debugRich        = 2
)

// uninstrumentedMark stands for the size of the bounds where two more sizes
// follow: of the bounds, and of those by the IL as it was before it was
// instrumented, which lie behind them.
const uninstrumentedMark = 0xffffffff

// countedChunks finds the parts of the debug information at a, which begins with
// their sizes. Where the code was instrumented, the bounds that count are those of
// the IL as it was before, as for the runtime's own stack traces.
func (r *Runtime) countedChunks(a arch.Addr) (d debugChunks, ok bool) {
	s := nibbleReader{r: r, at: a}
	if d.bounds.n = s.number(); d.bounds.n != 0 {
		s.skip(1) // variables
		d.bounds.at = s.rest()
		return d, !s.bad
	}
	bounds, vars, uninstrumented, patchpoints, rich := s.number(), s.number(), s.number(), s.number(), s.number()
	s.skip(1) // async
	at := s.rest()
	d.bounds = chunk{at, bounds}
	if at += arch.Addr(bounds) + arch.Addr(vars); uninstrumented != 0 {
		d.bounds = chunk{at, uninstrumented}
	}
	d.rich = chunk{at + arch.Addr(uninstrumented) + arch.Addr(patchpoints), rich}
	return d, !s.bad
}

// flaggedChunks finds the parts of the debug information at a, which begins with a
// byte of flags.
func (r *Runtime) flaggedChunks(a arch.Addr, outer outerForm) (d debugChunks, ok bool) {
	flags, ok := r.u8(a)
	if !ok {
		return d, false
	}
	a++
	if flags&debugPatchpoints != 0 {
		// PatchpointInfo, and how many locals it has (src/coreclr/inc/patchpointinfo.h).
		size, count := arch.Addr(32), arch.Addr(8)
		if outer == outerFlags10 {
			size, count = 40, 16
		}
		locals, ok := r.u32(a + count)
		if !ok || locals > maxBounds {
			return d, false
		}
		a += size + 4*arch.Addr(locals)
	}
	if flags&debugRich != 0 {
		rich, ok := r.u32(a)
		if !ok {
			return d, false
		}
		d.rich = chunk{a + 4, rich}
		a += 4 + arch.Addr(rich)
	}
	s := nibbleReader{r: r, at: a}
	bounds, uninstrumented := s.number(), uint32(0)
	if bounds == uninstrumentedMark && outer == outerFlags10 {
		bounds, uninstrumented = s.number(), s.number()
	}
	s.skip(1) // variables
	d.bounds = chunk{s.rest(), bounds}
	if uninstrumented != 0 {
		d.bounds = chunk{s.rest() + arch.Addr(bounds), uninstrumented}
	}
	return d, !s.bad
}
