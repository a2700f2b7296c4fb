package unwind

import "github.com/seamwalk/seam/arch"

// signalReturn leaves the trampolines that signal handlers return to, by their
// bytes: before call frame information that covers one, and where none does.
type signalReturn struct{}

func openSignalReturn(u *Unwinder, _ Image) Source { return signalReturn{} }

func (signalReturn) Unwind(s *Step) Outcome {
	for i := range s.Arch.SigReturns {
		t := &s.Arch.SigReturns[i]
		for _, at := range t.Starts {
			// The handler's return address is the first byte, so pc is
			// looked up as it is, exact or not.
			if !s.PC.Exact && at != 0 {
				break
			}
			b := s.Mem.View(s.PC.Addr-arch.Addr(at), len(t.Code))
			if string(b) == t.Code {
				return s.interrupted(arch.Addr(t.Context))
			}
		}
	}
	return NoInfo
}

// interrupted takes the registers from the ucontext_t that lies off bytes
// above the stack pointer.
func (s *Step) interrupted(off arch.Addr) Outcome {
	a := s.Arch
	sp, ok := s.Regs.Get(a.SP)
	if !ok {
		return s.unknown(a.SP)
	}
	s.Out = arch.Regs{}
	for _, f := range a.Signal.Fields {
		at := arch.Addr(sp) + off + arch.Addr(f.Off)
		v, ok := s.Mem.Word(at)
		switch {
		case ok:
			s.Out.Set(f.Reg, v)
			if f.Reg == a.PC {
				s.RAAt = at
			}
		case f.Reg == a.PC || f.Reg == a.SP:
			return s.broken(MemoryMissing, at)
		default:
			s.Holes[f.Reg] = at
		}
	}
	s.Exact = true
	return Stepped
}
