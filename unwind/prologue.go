package unwind

import "github.com/seamwalk/seam/arch"

// prologue leaves code that no table describes by following its instructions:
// PLT entries, stubs, assembly. It answers for a pc that is about to run only:
// what follows a call says nothing sure, the call may never return.
type prologue struct{ arch *arch.Arch }

func openPrologue(u *Unwinder, _ Image) Source { return prologue{u.arch} }

func (p prologue) Unwind(s *Step) Outcome {
	if !s.PC.Exact || !p.arch.Leave(s.Mem, s.PC.Addr, &s.Rule) {
		return NoInfo
	}
	return UseRule
}
