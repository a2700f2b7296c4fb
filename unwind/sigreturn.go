package unwind

import (
	"github.com/seamwalk/seam/arch"
)

// A trampoline is the code that a signal handler of Linux returns to, which
// asks the kernel to put back the registers of what was interrupted. The
// system call's number is part of the kernel's ABI, so is where the registers
// lie; debuggers know such code by its bytes too, as its call frame information
// is often missing or wrong:
//   - musl, and the page that qemu-user makes, have none.
//   - The ARM64 vDSO's leads to the caller of the interrupted function: it can
//     name the link register's place but not the pc's
//     (arch/arm64/kernel/vdso/sigreturn.S).
type trampoline struct {
	code    string // all of it
	at      []int  // where its instructions begin
	context int    // of the ucontext_t, from the stack pointer
}

var trampolines = []trampoline{
	// mov rax, 15; syscall. The frame is ucontext_t, siginfo_t, once the
	// handler has popped its return address (struct rt_sigframe,
	// arch/x86/include/asm/sigframe.h).
	{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", []int{0, 7}, 0},
	{"\xb8\x0f\x00\x00\x00\x0f\x05", []int{0, 5}, 0}, // with mov eax
	// mov x8, 139; svc 0. The frame is siginfo_t of 128 bytes, ucontext_t
	// (struct rt_sigframe, arch/arm64/kernel/signal.c).
	{"\x68\x11\x80\xd2\x01\x00\x00\xd4", []int{0, 4}, 128},
}

// signalReturn leaves trampolines that no table covers.
type signalReturn struct{}

func openSignalReturn(u *Unwinder, _ Image) Source { return signalReturn{} }

func (signalReturn) Unwind(s *Step) Outcome {
	for i := range trampolines {
		t := &trampolines[i]
		for _, at := range t.at {
			// The handler's return address is the first byte, so pc is
			// looked up as it is, exact or not.
			if !s.PC.Exact && at != 0 {
				break
			}
			b := s.Mem.View(s.PC.Addr-arch.Addr(at), len(t.code))
			if string(b) == t.code {
				return s.interrupted(arch.Addr(t.context))
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
