package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A method that loops for long before it was optimized is replaced while it
// runs (on-stack replacement): its optimized version jumps into the middle of
// the frame of the first, and goes on there. On x86-64 the return address of the
// first version's last call, into the runtime, then still lies where a caller's
// would, and the saved frame pointer leads to it, though nothing will ever
// return there (JIT_Patchpoint in src/coreclr/vm/jithelpers.cpp of .NET 10).

// mayBeReplaced reports whether the method of c may have been replaced on the
// stack: it was compiled with patchpoints, or the dump lacks what would say so.
// What only looks like a frame of such a method may be none.
func (r *Runtime) mayBeReplaced(c *Code) bool {
	if c.Kind != code.JIT {
		return false
	}
	info, ok := r.word(field(c.Header, r.names.HdrDebugInfo))
	if c.Header == 0 || !ok {
		return true
	}
	if info == 0 {
		return false // it would have patchpoints
	}
	has, ok := r.patchpoints(arch.Addr(info))
	return has || !ok
}

// patchpoints reports whether the debug information at a has patchpoints.
func (r *Runtime) patchpoints(a arch.Addr) (has, ok bool) {
	if outer, _ := r.jitForms(); outer == outerCounts {
		s := nibbleReader{r: r, at: a}
		if s.number() != 0 { // bounds; without the zero there is nothing but them and variables
			return false, !s.bad
		}
		s.skip(3) // bounds, variables, uninstrumented bounds
		return s.number() != 0, !s.bad
	}
	flags, ok := r.u8(a)
	return flags&debugPatchpoints != 0, ok
}
