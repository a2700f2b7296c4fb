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
	var at arch.Addr
	var n uint32
	switch c.Kind {
	case code.JIT:
		info, found := r.word(field(c.Header, r.names.HdrDebugInfo))
		if !found || info == 0 {
			return nil, 0, false
		}
		var outer outerForm
		outer, form = r.jitForms()
		at, n, ok = r.jitBounds(arch.Addr(info), outer)
	case code.ReadyToRun:
		at, n, form, ok = r.r2rBounds(c)
	}
	if !ok || n == 0 || n > maxBounds {
		return nil, 0, false
	}
	b = r.linked(at, int(n))
	return b, form, b != nil
}

// Flags of the byte that begins the debug information of .NET 8 to 10.
const (
	debugPatchpoints = 1
	debugRich        = 2
)

// uninstrumentedMark stands for the size of the bounds where two more sizes
// follow: of the bounds and of those without instrumentation.
const uninstrumentedMark = 0xffffffff

// jitBounds finds the bounds in the debug information at a.
func (r *Runtime) jitBounds(a arch.Addr, outer outerForm) (at arch.Addr, n uint32, ok bool) {
	s := nibbleReader{r: r, at: a}
	if outer == outerCounts {
		if n = s.number(); n != 0 {
			s.skip(1) // variables
			return s.rest(), n, !s.bad
		}
		n = s.number()
		s.skip(5) // variables, uninstrumented, patchpoints, rich, async
		return s.rest(), n, !s.bad
	}
	flags, ok := r.u8(a)
	if !ok {
		return 0, 0, false
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
			return 0, 0, false
		}
		a += size + 4*arch.Addr(locals)
	}
	if flags&debugRich != 0 {
		rich, ok := r.u32(a)
		if !ok {
			return 0, 0, false
		}
		a += 4 + arch.Addr(rich)
	}
	s.at = a
	n = s.number()
	if n == uninstrumentedMark && outer == outerFlags10 {
		n = s.number()
		s.skip(1) // uninstrumented
	}
	s.skip(1) // variables
	return s.rest(), n, !s.bad
}
