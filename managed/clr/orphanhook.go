package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// hookedSample is how many methods with a known MethodDesc say what a profiler's
// hooks are handed, and hookedLeast how many have to.
const (
	hookedSample = 16
	hookedLeast  = 4
)

// hookedMethod returns the MethodDesc of the method whose code begins at start by
// what that hands to the enter hook of a profiler, 0 if it calls none: where a dump
// lacks all else that leads to it, an instance of a generic method for one, its own
// code still has it. A profiler can have hooks called with ids of its own making
// (SetFunctionIDMapper): then nothing is told.
func (r *Runtime) hookedMethod(start arch.Addr) arch.Addr {
	if r.arch.EnterHook == nil {
		return 0
	}
	id, ok := r.arch.EnterHook(r.mem, start)
	if !ok || id%uint64(r.arch.Word) != 0 || !r.hooksTakeMethods() {
		return 0
	}
	return arch.Addr(id)
}

// hooksTakeMethods reports whether hooks are called with MethodDescs, as methods
// show whose code header has theirs.
func (r *Runtime) hooksTakeMethods() bool {
	x := &r.orphans
	x.hooks.Do(func() {
		same, other := 0, 0
		r.Compiled(func(m code.Compiled) bool {
			if m.Kind == code.CompiledStub || m.ID == 0 {
				return true
			}
			if id, ok := r.arch.EnterHook(r.mem, m.Span.Lo); ok && arch.Addr(id) == m.ID {
				same++
			} else if ok {
				other++
			}
			return other == 0 && same < hookedSample
		})
		x.hooked = other == 0 && same >= hookedLeast
	})
	return x.hooked
}
