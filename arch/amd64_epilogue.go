package arch

import "encoding/binary"

// What one instruction of an epilogue does.
type amd64Tail uint8

const (
	amd64TailNone amd64Tail = iota // not an instruction of an epilogue that has begun
	amd64TailMore                  // bytes are missing
	amd64TailPop
	amd64TailAdd // to RSP
	amd64TailNop // vzeroupper and vzeroall, which clang puts right before ret
	amd64TailRet
	amd64TailJump // to an offset from the next instruction
	amd64TailOut  // a jump through memory or a register
)

// amd64MaxTail bounds an epilogue: two instructions that add, 16 pops, jumps.
const amd64MaxTail = 24

// amd64TailInsn matches the instruction at the begin of b against those that
// an epilogue may hold once it has begun. n is its length, v the register
// popped, the bytes added, or the offset jumped to.
//
// `lea rsp,[fp+x]`, `mov rsp,rbp` and `leave` are not among them: they come
// first, and before the first instruction of an epilogue the frame is whole.
func amd64TailInsn(b []byte) (k amd64Tail, n int, v int64) {
	var prefix, rex byte
	op := b
	if len(op) > 0 && (op[0] == 0xf2 || op[0] == 0xf3) { // bnd, rep
		prefix, op = op[0], op[1:]
	}
	if len(op) > 0 && op[0]&0xf0 == 0x40 {
		rex, op = op[0], op[1:]
	}
	if len(op) == 0 {
		return amd64TailMore, 0, 0
	}
	need := amd64TailNeeds(op[0])
	switch {
	case need == 0:
		return amd64TailNone, 0, 0
	case len(op) < need:
		return amd64TailMore, 0, 0
	}
	if k, n, v = amd64TailOp(op, prefix, rex); n > 0 {
		n += len(b) - len(op)
	}
	return k, n, v
}

// amd64TailNeeds returns how many bytes, the opcode op and what follows it, tell
// whether an instruction is one of an epilogue; 0 if no instruction with op is.
func amd64TailNeeds(op byte) int {
	switch op {
	case 0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0xc3:
		return 1
	case 0x81, 0x83, 0x8d, 0xe9, 0xeb, 0xff:
		return 2
	case 0xc2, 0xc5:
		return 3
	}
	return 0
}

// amd64TailOp is amd64TailInsn for the opcode at op, which amd64TailNeeds knows
// and of which as many bytes are there, behind these prefixes.
func amd64TailOp(op []byte, prefix, rex byte) (k amd64Tail, n int, v int64) {
	switch {
	case op[0]&0xf8 == 0x58:
		if reg := amd64PERegs[op[0]&7|rex&1<<3]; reg != amd64RSP && prefix == 0 {
			return amd64TailPop, 1, int64(reg)
		}
	case op[0] == 0xc3:
		return amd64TailRet, 1, 0
	case op[0] == 0xc2:
		return amd64TailRet, 3, 0
	case op[0] == 0xc5 && rex|prefix == 0 && op[1]&0xfb == 0xf8 && op[2] == 0x77:
		return amd64TailNop, 3, 0
	case op[0] == 0xeb && rex == 0:
		return amd64TailJump, 2, int64(int8(op[1]))
	case op[0] == 0xe9 && rex == 0:
		return amd64TailImm32(amd64TailJump, op, 1)
	case op[0] == 0xff && op[1] == 0x25:
		return amd64TailImm32(amd64TailOut, op, 2)
	case op[0] == 0xff && op[1]>>3&7 == 4 && rex&8 != 0:
		// A jump through a register is a tail call only with REX.W: so says
		// the ABI, and compilers add it. Without it, it is a switch.
		return amd64TailOut, 2, 0
	case rex&0xf9 != 0x48 || prefix != 0:
	case op[0] == 0x83 && op[1] == 0xc4: // add rsp, imm8
		return amd64TailImm8(amd64TailAdd, op, 2)
	case op[0] == 0x81 && op[1] == 0xc4: // add rsp, imm32
		return amd64TailImm32(amd64TailAdd, op, 2)
	case op[0] == 0x8d && (op[1] == 0x64 || op[1] == 0xa4): // lea rsp, [rsp+x]
		switch {
		case len(op) < 3:
			return amd64TailMore, 0, 0
		case op[2] != 0x24:
		case op[1] == 0x64:
			return amd64TailImm8(amd64TailAdd, op, 3)
		default:
			return amd64TailImm32(amd64TailAdd, op, 3)
		}
	}
	return amd64TailNone, 0, 0
}

// amd64TailImm8 returns the instruction k at op that ends with the signed byte at
// op[at].
func amd64TailImm8(k amd64Tail, op []byte, at int) (amd64Tail, int, int64) {
	if len(op) <= at {
		return amd64TailMore, 0, 0
	}
	return k, at + 1, int64(int8(op[at]))
}

// amd64TailImm32 is amd64TailImm8 for a signed number of 4 bytes.
func amd64TailImm32(k amd64Tail, op []byte, at int) (amd64Tail, int, int64) {
	if len(op) < at+4 {
		return amd64TailMore, 0, 0
	}
	return k, at + 4, int64(int32(binary.LittleEndian.Uint32(op[at:])))
}

// amd64Epilogue replaces r, the rule of the body of fn, when the instructions
// at q.PC are the rest of an epilogue.
//
// It goes further than the ABI's "legal epilogues": any row of pops and
// additions that ends in a ret is followed, also through a jump inside the
// function, because running it can only end in the caller. What ends in a jump
// out of the function is an epilogue if it popped anything; if the jump stands
// alone, it is one only if the instruction before it took the frame down.
// gcc's and clang's cold parts are entered by such a jump with the frame still
// standing, and where wine's unwinder takes that for a tail call it is wrong.
func amd64Epilogue(q *PEQuery, fn *PEFunction, own *amd64Info, frame *amd64Frame, r *Rule) PEResult {
	var slot [16]int64
	var popped RegSet
	off := int64(0)
	pc, moved := q.PC.Addr, false
	for range amd64MaxTail {
		b := viewUpTo(q.Mem, pc, 8)
		k, n, v := amd64TailInsn(b)
		next := pc + Addr(n)
		switch k {
		case amd64TailNone:
			return PEResult{}
		case amd64TailMore:
			if own.noEpilogue(q, fn) {
				return PEResult{}
			}
			return PEResult{PENoCode, pc + Addr(len(b))}
		case amd64TailPop:
			slot[v] = off
			popped |= 1 << v
			off += 8
			moved = true
		case amd64TailAdd:
			off += v
			moved = true
		case amd64TailJump:
			to := next + Addr(v)
			// A jump to its own begin is a tail call of itself.
			if lo, hi := q.Base+Addr(fn.Begin), q.Base+Addr(fn.End); lo < to && to < hi {
				next = to
				break
			}
			k = amd64TailOut
		}
		if k == amd64TailOut && !moved {
			if gone, res := frame.gone(q, fn, pc); !gone {
				return res
			}
		}
		if k == amd64TailOut || k == amd64TailRet {
			f := amd64Frame{base: amd64RSP, sp: off, saved: popped, slot: slot}
			f.rule(r)
			return PEResult{}
		}
		pc = next
	}
	return PEResult{}
}

// gone reports whether the instructions right before the jump at pc took the
// frame down. It wants all that the prologue's end implies, to the byte: a
// single byte that looks like a pop is more often a part of something else.
func (f *amd64Frame) gone(q *PEQuery, fn *PEFunction, pc Addr) (bool, PEResult) {
	const longest = 3 + 16*2 + 8 // vzeroupper, pops, and what frees the rest
	n := min(int64(pc-(q.Base+Addr(fn.Begin))), longest)
	if n <= 0 {
		return false, PEResult{}
	}
	b := q.Mem.View(pc-Addr(n), int(n))
	if b == nil {
		return false, PEResult{PENoCode, pc - Addr(n)}
	}
	ends := func(tail ...byte) bool {
		return len(b) >= len(tail) && string(b[len(b)-len(tail):]) == string(tail)
	}
	if ends(0xc5, 0xf8, 0x77) {
		b = b[:len(b)-3]
	}
	for i := f.n - 1; i >= 0; i-- {
		reg := amd64Number(f.pops[i])
		if !ends(0x58 | reg&7) {
			return false, PEResult{}
		}
		b = b[:len(b)-1]
		if reg >= 8 {
			if !ends(0x41) {
				return false, PEResult{}
			}
			b = b[:len(b)-1]
		}
	}
	if f.free == 0 {
		return f.n > 0, PEResult{}
	}
	imm := binary.LittleEndian.AppendUint32(nil, uint32(f.free))
	ends8 := func(op ...byte) bool { return f.free < 128 && ends(append(op, imm[0])...) }
	ends32 := func(op ...byte) bool { return ends(append(op, imm...)...) }
	switch {
	case ends8(0x48, 0x83, 0xc4), ends32(0x48, 0x81, 0xc4), // add rsp, n
		ends8(0x48, 0x8d, 0x64, 0x24), ends32(0x48, 0x8d, 0xa4, 0x24), // lea rsp, [rsp+n]
		ends(0x48, 0x8b, 0xe5), ends(0x48, 0x89, 0xec), // mov rsp, rbp
		ends(0x49, 0x8b, 0xe3), ends(0x4c, 0x89, 0xdc), // mov rsp, r11
		f.free == 8 && (ends(0x58) || ends(0x59) || ends(0x5a)),       // pop into a scratch register
		len(b) >= 4 && string(b[len(b)-4:len(b)-1]) == "\x48\x8d\x65", // lea rsp, [rbp+n]
		len(b) >= 7 && string(b[len(b)-7:len(b)-4]) == "\x48\x8d\xa5":
		return true, PEResult{}
	}
	return false, PEResult{}
}

// amd64Number returns the CPU's own number of a general register.
func amd64Number(r Reg) byte {
	for i, x := range amd64PERegs {
		if x == r {
			return byte(i)
		}
	}
	return 0
}

// noEpilogue reports whether the EPILOG codes of version 2 rule out that q.PC
// is in an epilogue. The first one holds their size, the others how far from
// the end of the function each begins; bit 0 of the first one's info says that
// one more ends the function.
func (i *amd64Info) noEpilogue(q *PEQuery, fn *PEFunction) bool {
	c := i.codes
	if i.version != 2 || len(c) < 2 || c[1]&15 != amd64Epilog {
		return false
	}
	size, end := Addr(c[0]), q.Base+Addr(fn.End)
	if c[1]&0x10 != 0 && q.PC.Addr-(end-size) < size {
		return false
	}
	for c = c[2:]; len(c) >= 2 && c[1]&15 == amd64Epilog; c = c[2:] {
		from := end - (Addr(c[0]) | Addr(c[1]>>4)<<8)
		if from != end && q.PC.Addr-from < size {
			return false
		}
	}
	return true
}
