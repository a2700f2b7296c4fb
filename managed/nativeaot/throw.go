package nativeaot

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// Sources returns what leaves the functions that begin an exception.
func (r *Runtime) Sources() []unwind.Known {
	if r.throw == nil {
		return nil
	}
	return []unwind.Known{{By: unwind.ByExplicitFrame, Source: thrower{r.span, r.throw}}}
}

// A thrower leaves RhpThrowHwEx and its like by the registers that they have saved
// of the code that threw.
type thrower struct {
	span  arch.Span // of the program
	throw *arch.Throw
}

// An ExInfo lies where the stack pointer is while they call, and their context
// right above it (struct ExInfo, src/coreclr/nativeaot/Runtime/thread.h; the same
// in ExceptionHandling.cs, so that no release has changed it).
const (
	exInfoContext = 8
	exInfoKind    = 0x18

	kindBits  = 7 // of ExKind: what it is, and whether it was thrown again
	kindFault = 2
)

// Unwind answers for a return address behind the call by which such a function
// has the exception dispatched. The function's own unwind information leads
// nowhere where a fault brought the thread there.
func (h thrower) Unwind(s *unwind.Step) unwind.Outcome {
	if s.PC.Exact || !h.span.Has(s.PC.Addr) {
		return unwind.NoInfo
	}
	off, ok := h.throw.At(s.Mem, s.PC.Addr)
	sp, known := s.Regs.Get(s.Arch.SP)
	if !ok || !known {
		return unwind.NoInfo
	}
	info := arch.Addr(sp)
	context, ok1 := s.Mem.Word(info + exInfoContext)
	kind := s.Mem.View(info+exInfoKind, 1)
	at := field(info, off)
	b := s.Mem.View(at, h.throw.Context.Size)
	switch {
	case !ok1:
		return broken(s, unwind.MemoryMissing, info+exInfoContext)
	case arch.Addr(context) != at:
		return broken(s, unwind.BadInfo, info+exInfoContext)
	case kind == nil:
		return broken(s, unwind.MemoryMissing, info+exInfoKind)
	case b == nil:
		return broken(s, unwind.MemoryMissing, arch.FirstMissing(s.Mem, at, h.throw.Context.Size))
	}
	s.Out = arch.Regs{}
	h.throw.Context.Load(b, &s.Out)
	// The function has put the context at the stack pointer of the code that
	// threw, but for what aligns it and a return address.
	if v, _ := s.Out.Get(s.Arch.SP); v-uint64(field(at, h.throw.Context.Size)) > 16 {
		return broken(s, unwind.BadInfo, at)
	}
	s.Exact = kind[0]&kindBits == kindFault
	if s.RAAt = 0; s.Exact {
		s.RAAt = h.pcAt(s.Arch, at)
	}
	return unwind.Stepped
}

// pcAt returns where the context at a has the pc.
func (h thrower) pcAt(cpu *arch.Arch, a arch.Addr) arch.Addr {
	for _, f := range h.throw.Context.Fields {
		if f.Reg == cpu.PC {
			return field(a, f.Off)
		}
	}
	return 0
}

func broken(s *unwind.Step, why unwind.Reason, at arch.Addr) unwind.Outcome {
	s.Why = unwind.Stop{Reason: why, At: at}
	return unwind.Broken
}
