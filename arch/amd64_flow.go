package arch

import "golang.org/x/arch/x86/x86asm"

var amd64Flow = flow{amd64FlowStep, amd64TakesDown}

// amd64FlowStep reads the instruction at at.
func amd64FlowStep(mem Memory, at Addr) (s flowStep) {
	b := viewUpTo(mem, at, 15)
	if n := amd64VEXLen(b); n > 0 {
		s.next = at + Addr(n)
		return s
	}
	in, ok := amd64Decode(b)
	if !ok {
		return flowStep{kind: flowEnd}
	}
	s.next = at + Addr(in.Len)
	rel, direct := in.Args[0].(x86asm.Rel)
	if direct {
		s.to = s.next + Addr(int64(rel))
	}
	switch in.Op {
	case x86asm.CALL:
		return s
	case x86asm.JMP:
		if s.kind = flowJump; !direct {
			s.kind = flowEnd
		}
		return s
	case x86asm.RET:
		s.kind, s.tail = flowEnd, true
		return s
	case x86asm.INT, x86asm.UD2, x86asm.HLT, x86asm.SYSCALL, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ,
		x86asm.LJMP, x86asm.LCALL, x86asm.ENTER:
		return flowStep{kind: flowEnd}
	}
	if direct {
		s.kind = flowBranch
		return s
	}
	p := amd64Start()
	p.run(&in)
	for _, reg := range [...]Reg{amd64RSP, amd64RBP} {
		if p.reg[reg] != (codeValue{valueSum, reg, 0}) {
			s.writes |= 1 << reg
		}
	}
	s.tail = s.writes.Has(amd64RSP)
	return s
}

// amd64TailSteps bounds the instructions that take a frame down: as many pops as
// there are registers, and few more.
const amd64TailSteps = 24

// amd64TakesDown finds where the code at at leads, which is about to take its
// function's frame down.
func amd64TakesDown(mem Memory, at Addr, r *Rule) bool {
	p := amd64Start()
	steps := amd64TailSteps
	if !p.follow(mem, at, &steps, r) {
		return false
	}
	// Where a function calls, the stack pointer is a multiple of 16, and so it
	// is before the function itself is called (System V ABI, AMD64 supplement,
	// 3.2.2; the Windows ABI says the same).
	return r.Base != amd64RSP || r.Offset%16 == 0
}

// amd64VEXLen returns how long the instruction at the begin of b is if it has
// a VEX or EVEX prefix, which x86asm does not know: 0 for any other, and where
// bytes are missing (Intel SDM volume 2, 2.3 and 2.7). None of them changes the
// stack pointer, and compilers use none of them to change a frame pointer.
func amd64VEXLen(b []byte) int {
	if len(b) < 3 {
		return 0
	}
	space, n := byte(1), 2 // which map of opcodes; bytes of the prefix
	switch b[0] {
	case 0xc5:
	case 0xc4:
		space, n = b[1]&0x1f, 3
	case 0x62:
		space, n = b[1]&7, 4
	default:
		return 0
	}
	if len(b) < n+2 {
		return 0
	}
	op := b[n]
	if op == 0x77 && space == 1 && b[0] != 0x62 { // vzeroupper, vzeroall
		return n + 1
	}
	n += 1 + amd64ModRMLen(b[n+1:])
	switch {
	case space == 3, space == 1 && (op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6):
		n++ // an immediate byte
	case space == 0 || space > 3:
		return 0
	}
	if n > len(b) {
		return 0
	}
	return n
}
