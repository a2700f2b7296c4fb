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

// lowest is the lowest address that Linux and Windows let a program map by
// default (vm.mmap_min_addr; 64 KiB on both).
const lowest arch.Addr = 1 << 16

// nullCall leaves a pc that a call through a null pointer, or through a member
// of a null table, went to. No code can lie there, so nothing has run since the
// call. That it was one is checked by the instruction before its return
// address. The rule is for once, as it is a fact about this stack.
type nullCall struct{ arch *arch.Arch }

func openNullCall(u *Unwinder, _ Image) Source { return nullCall{u.arch} }

func (n nullCall) Unwind(s *Step) Outcome {
	if !s.PC.Exact || s.PC.Addr >= lowest {
		return NoInfo
	}
	r := justCalled(n.arch)
	var ra uint64
	ok := false
	if r.RA != arch.NoReg {
		ra, ok = s.Regs.Get(r.RA)
	} else if sp, known := s.Regs.Get(r.Base); known {
		if ra, ok = s.Mem.Word(arch.Addr(sp)); !ok {
			return s.broken(MemoryMissing, arch.Addr(sp))
		}
	}
	if !ok || !n.arch.AfterCall(s.Mem, n.arch.Strip(arch.Addr(ra))) {
		return NoInfo
	}
	s.Rule, s.Once = r, true
	return UseRule
}
