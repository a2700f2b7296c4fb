package unwind

import "github.com/seamwalk/seam/arch"

// framePointer follows the chain of saved frame pointers. It knows nothing
// about the code, so it is asked after every source that does. That the
// register looks like a frame pointer now says nothing about the next visit, so
// the rule is for once.
type framePointer struct{ arch *arch.Arch }

func openFramePointer(u *Unwinder, _ Image) Source { return framePointer{u.arch} }

func (f framePointer) Unwind(s *Step) Outcome {
	fp, ok := s.Regs.Get(f.arch.FP)
	if !ok && s.Holes[f.arch.FP] != 0 {
		return s.unknown(f.arch.FP)
	}
	sp, known := s.Regs.Get(f.arch.SP)
	if !ok || known && fp < sp || fp%uint64(f.arch.Word) != 0 {
		return NoInfo
	}
	s.Rule, s.Once = f.arch.FramePointer, true
	return UseRule
}
