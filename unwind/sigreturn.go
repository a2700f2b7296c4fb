package unwind

import "github.com/seamwalk/seam/arch"

// signalReturn leaves the trampolines that signal handlers return to. They are
// known by their bytes, before call frame information that covers one, and
// where none does.
type signalReturn struct{ abi *arch.ABI }

func openSignalReturn(u *Unwinder, _ Image) Source {
	if len(u.abi.SigReturns) == 0 {
		return nil
	}
	return signalReturn{u.abi}
}

func (t signalReturn) Unwind(s *Step) Outcome {
	sp, _ := s.Regs.Get(s.Arch.SP)
	if context, ok := t.abi.SignalContext(s.Mem, s.PC, arch.Addr(sp)); ok {
		return s.interrupted(&t.abi.Signal, context-arch.Addr(sp))
	}
	return NoInfo
}

// interrupted takes the registers from the context that lies off bytes above
// the stack pointer and is laid out as l says.
func (s *Step) interrupted(l *arch.Layout, off arch.Addr) Outcome {
	a := s.Arch
	sp, ok := s.Regs.Get(a.SP)
	if !ok {
		return s.unknown(a.SP)
	}
	s.Out = arch.Regs{}
	for _, f := range l.Fields {
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
