package arch

import "golang.org/x/arch/x86/x86asm"

// amd64PrologueBytes bounds a prologue: sixteen-byte stores that clear locals
// make the longest ones.
const amd64PrologueBytes = 512

// amd64Pushed are the registers that a prologue saves, on any system.
var amd64Pushed = Regset(amd64RBX, amd64RBP, amd64RSI, amd64RDI, amd64R12, amd64R13, amd64R14, amd64R15)

// An amd64PrologueState is what the instructions of a prologue have done so far.
type amd64PrologueState struct {
	depth int32 // CFA - rsp
	fp    int32 // CFA - rbp, once rbp is the frame pointer
	isFP  bool
	alloc bool  // rsp has been lowered for locals
	probe int32 // how far r11 lies below rsp, once it does
	osr   bool  // it works on another function's frame
	saved RegSet
	rule  Rule
}

// amd64FromPrologue follows a compiler's prologue from a function's first byte: it
// pushes registers, makes room, and sets up rbp, before it first calls or
// jumps. That is all that unwind codes describe, so this stands in for them
// where a dump has the code and not the codes. pc is a return address in the
// function's body. Rsp is taken to stay where the prologue leaves it, as in all
// code of CoreCLR's JIT but behind a stackalloc.
//
// A function with handlers always keeps rbp as its frame pointer
// (src/coreclr/jit, setFramePointerRequiredEH), and its funclets run with the
// same rbp and a lower rsp. So where the prologue sets up no frame pointer, pc is
// in the body. Where it does, the distance between rsp and rbp tells the body from
// a funclet; behind a stackalloc the distance is another as well, and there is no
// answer.
func amd64FromPrologue(mem Memory, start, pc Addr, regs *Regs, r *Rule) (once, ok bool) {
	s := amd64PrologueState{depth: 8}
	s.rule.RA = NoReg
	s.rule.Save(amd64RIP, -8)
	for at := start; at < pc && at-start < amd64PrologueBytes; {
		b := viewUpTo(mem, at, 15)
		if n := amd64VEXLen(b); n > 0 { // clears locals
			at += Addr(n)
			continue
		}
		in, ok := amd64Decode(b)
		if !ok {
			if s.isFP {
				break
			}
			return false, false // what sets up rbp may follow
		}
		if !s.run(&in) {
			break
		}
		at += Addr(in.Len)
	}
	if !s.isFP && !s.alloc && s.depth == 8 || s.osr {
		return false, false // nothing that looks like a prologue
	}
	if s.isFP {
		sp, ok1 := regs.Get(amd64RSP)
		fp, ok2 := regs.Get(amd64RBP)
		if !ok1 || !ok2 || sp+uint64(s.depth) != fp+uint64(int64(s.fp)) {
			return false, false
		}
	}
	*r = s.rule
	r.Base, r.Offset = amd64RSP, s.depth
	return s.isFP, true
}

// lower makes room for n bytes of locals.
func (s *amd64PrologueState) lower(n int64) bool {
	if n <= 0 || int64(s.depth)+n > 1<<30 {
		return false
	}
	s.depth += int32(n)
	s.alloc = true
	return true
}

// run does one instruction. It reports false at the first that is not of a
// prologue, or that changes the stack pointer in a way it does not know.
func (s *amd64PrologueState) run(in *x86asm.Inst) bool {
	if s.borrows(in) {
		s.osr = true
		return false
	}
	switch in.Op {
	case x86asm.PUSH:
		reg, size, ok := amd64Operand(in.Args[0])
		if !ok || size != 8 || s.alloc {
			return false
		}
		s.depth += 8
		if !amd64Pushed.Has(reg) || s.saved.Has(reg) {
			s.alloc = true // only for the room
			return true
		}
		s.saved |= 1 << reg
		return s.rule.Save(reg, -s.depth)
	case x86asm.SUB:
		if in.Args[0] != x86asm.RSP {
			return true
		}
		n, ok := in.Args[1].(x86asm.Imm)
		return ok && s.lower(int64(n))
	case x86asm.MOV:
		if in.Args[0] == x86asm.RSP && in.Args[1] == x86asm.R11 && s.probe > 0 {
			return s.lower(int64(s.probe))
		}
		if in.Args[0] == x86asm.RBP && in.Args[1] == x86asm.RSP && !s.isFP {
			s.fp, s.isFP = s.depth, true
			return true
		}
	case x86asm.LEA:
		m, ok := in.Args[1].(x86asm.Mem)
		if in.Args[0] == x86asm.RBP {
			if !ok || m.Base != x86asm.RSP || m.Index != 0 || s.isFP {
				return false
			}
			s.fp, s.isFP = s.depth-int32(m.Disp), true
			return true
		}
		if in.Args[0] == x86asm.R11 && ok && m.Base == x86asm.RSP && m.Index == 0 {
			s.probe = -int32(m.Disp)
		}
	case x86asm.CALL:
		// Before a frame of more than a page is made its pages are touched, or
		// it could leap over the guard page: lea r11, [rsp-n]; call the helper,
		// which keeps all registers; mov rsp, r11 (src/coreclr/jit/codegenxarch.cpp,
		// genAllocLclFrame; seen in System.Private.CoreLib).
		return s.probe > 0 && !s.alloc
	case x86asm.JMP, x86asm.RET, x86asm.POP, x86asm.UD2, x86asm.INT, x86asm.SYSCALL, x86asm.LEAVE, x86asm.ENTER:
		return false
	}
	if _, jump := in.Args[0].(x86asm.Rel); jump {
		return false
	}
	return in.Args[0] != x86asm.RSP && in.Args[0] != x86asm.RBP
}

// borrows reports whether an instruction is of a method that was replaced on
// the stack while it looped. Such a method goes on in the frame of its first
// version, which it enlarges: its prologue copies the saved rbp from there, and
// saves registers above its own part. How large the whole is no instruction
// tells (src/coreclr/jit/codegencommon.cpp, genFnProlog, of .NET 10).
func (s *amd64PrologueState) borrows(in *x86asm.Inst) bool {
	for i, arg := range in.Args {
		m, ok := arg.(x86asm.Mem)
		if !ok || in.Op == x86asm.LEA {
			continue
		}
		if m.Base == x86asm.RBP && !s.isFP {
			return true
		}
		if i == 0 && in.Op == x86asm.MOV && m.Base == x86asm.RSP && int32(m.Disp) >= s.depth {
			reg, size, ok := amd64Operand(in.Args[1])
			return ok && size == 8 && amd64Pushed.Has(reg)
		}
	}
	return false
}
