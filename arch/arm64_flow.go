package arch

var arm64Flow = flow{arm64FlowStep, arm64TakesDown}

// arm64FlowStep reads the instruction at at.
func arm64FlowStep(mem Memory, at Addr) (s flowStep) {
	w, ok := arm64Word(mem, at)
	if !ok {
		return flowStep{kind: flowEnd}
	}
	s.next = at + 4
	by, conditional := arm64Branch(w)
	switch {
	case w&0xfffffc1f == 0xd65f0000, w&0xfffffbff == 0xd65f0bff: // ret, retaa, retab
		s.kind, s.tail = flowEnd, true
	case w>>26 == 5: // b
		s.kind, s.to = flowJump, at+arm64Jump(w)
	case conditional:
		s.kind, s.to = flowBranch, at+Addr(by)
	case arm64IsCall(w):
	case w>>25 == 0x6b, w>>16 == 0, w>>24 == 0xd4: // br and its kin; udf; brk, hlt, svc
		s.kind = flowEnd
	default:
		p := arm64Start()
		p.run(w)
		for reg := arm64X19; reg <= arm64LR; reg++ {
			s.tail = s.tail || p.reg[reg].kind == valueLoad
		}
		for _, reg := range [...]Reg{arm64SP, arm64FP} {
			if p.reg[reg] != (codeValue{valueSum, reg, 0}) {
				s.writes |= 1 << reg
			}
		}
		s.tail = s.tail || s.writes.Has(arm64SP)
	}
	return s
}

// arm64TailSteps bounds the instructions that take a frame down: a pair of
// registers each, and few more.
const arm64TailSteps = 24

// arm64TakesDown finds where the code at at leads, which may be about to take
// its function's frame down. Behind a call the return address is not in LR any
// more, and the stack pointer is a multiple of 16 wherever it counts
// (Procedure Call Standard for the Arm 64-bit Architecture, 6.4.5).
func arm64TakesDown(mem Memory, at Addr, r *Rule) bool {
	p := arm64Start()
	steps := arm64TailSteps
	return p.follow(mem, at, &steps, r) && r.RA == NoReg && r.Offset%16 == 0
}
