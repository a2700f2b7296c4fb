package unwind

import "github.com/seamwalk/seam/arch"

// nowhere leaves a frame whose pc is at an address where no code can run. A thread
// gets there by a call through a null pointer, into a library that was closed, or
// into the heap. Nothing has run since the call, so the return address is where
// every call leaves it, and the registers are those that the call had: with pc 0 on
// x86-64, for example, the word at rsp is the return address. The rule is used
// once and not cached, because it is a fact about this stack and not about code.
//
// nowhere is asked before the sources that read tables or instructions. Those know
// nothing of such an address, so if nowhere finds no caller, the walk ends.
type nowhere struct {
	arch       *arch.Arch
	executable func(arch.Addr) (exec, known bool)
}

func openNowhere(u *Unwinder, _ Image) Source { return nowhere{u.arch, u.executable} }

// lowOnly is what is known of addresses without Options.Executable.
func lowOnly(a arch.Addr) (exec, known bool) { return false, a < arch.LowestMapped }

// barred reports whether no code can run at a.
func (n nowhere) barred(a arch.Addr) bool {
	exec, known := n.executable(a)
	return known && !exec
}

func (n nowhere) Unwind(s *Step) Outcome {
	if !s.PC.Exact || !n.barred(s.PC.Addr) {
		return NoInfo
	}
	r := justCalled(n.arch)
	var ra uint64
	var slot arch.Addr // that has ra; 0 for a register
	if r.RA != arch.NoReg {
		var ok bool
		if ra, ok = s.Regs.Get(r.RA); !ok {
			return s.unknown(r.RA)
		}
	} else {
		sp, ok := s.Regs.Get(r.Base)
		if !ok {
			return s.unknown(r.Base)
		}
		slot = arch.Addr(sp)
		if ra, ok = s.Mem.Word(slot); !ok {
			return s.broken(MemoryMissing, slot)
		}
	}
	if !n.called(s, n.arch.Strip(arch.Addr(ra)), slot) {
		return s.broken(NoCode, s.PC.Addr)
	}
	s.Rule, s.Once = r, true
	return UseRule
}

// called reports whether a call that returns to ra led to the pc of s.
//
// A call whose target, computed from the registers of s, is that pc certainly did.
// Any other call may have gone to code that then jumped to the pc, and that cannot
// be followed back, so it is believed too. But the thread may also have come to the
// pc by a return to it. Then what lies in ra's place is left over from something
// else. A return is known by what it leaves behind: the pc itself, in the link
// register or right below the stack pointer.
func (n nowhere) called(s *Step, ra, slot arch.Addr) bool {
	if n.barred(ra - 1) {
		return false
	}
	if n.arch.CallTo(s.Mem, &s.Regs, ra, s.PC.Addr) {
		return true
	}
	if slot == 0 {
		if ra == s.PC.Addr {
			return false
		}
	} else if below, ok := s.Mem.Word(slot - arch.Addr(n.arch.Word)); !ok || arch.Addr(below) == s.PC.Addr {
		return false
	}
	if s.Mem.View(ra-1, 1) == nil {
		exec, _ := n.executable(ra - 1)
		return exec // the bytes of the call are not at hand: they cannot speak against it
	}
	return n.arch.AfterCall(s.Mem, ra)
}
