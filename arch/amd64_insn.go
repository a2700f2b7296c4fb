package arch

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

// amd64AfterCall looks for a call of any length that ends right before a:
// e8 with 4 bytes, or ff /2, whose length its ModRM and SIB bytes give. A
// prefix before it changes nothing. Bytes that are missing rule out nothing.
func amd64AfterCall(mem Memory, a Addr) bool {
	const longest = 7 // without prefixes
	b := mem.View(a-longest, longest)
	if b == nil {
		return true
	}
	if b[longest-5] == 0xe8 {
		return true
	}
	for _, n := range [...]int{2, 3, 4, 6, 7} {
		if c := b[longest-n:]; c[0] == 0xff && c[1]>>3&7 == 2 && amd64ModRMLen(c[1:]) == n-1 {
			return true
		}
	}
	return false
}

// amd64ModRMLen returns how many bytes ModRM, SIB and displacement at the
// begin of b take. b holds at least 1 byte; a SIB byte that is missing counts
// as one without a displacement of its own.
func amd64ModRMLen(b []byte) int {
	mod, rm := b[0]>>6, b[0]&7
	if mod == 3 {
		return 1
	}
	n, base := 1, rm
	if rm == 4 {
		n = 2
		base = 0
		if len(b) > 1 {
			base = b[1] & 7
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && base == 5: // RIP-relative, or a SIB without base
		n += 4
	}
	return n
}

// amd64CallTo works out where the calls go that may end right before ret: e8
// with an offset, or ff /2 with a register or memory operand. Code that ends
// somewhere can be read as instructions of several lengths; one that goes to the
// very address in question is believed. So is a call of code that jumps on there:
// an entry of a procedure linkage table, a function that ends in a call.
func amd64CallTo(mem Memory, r *Regs, ret, to Addr) bool {
	const longest = 8 // with a REX prefix
	b := mem.View(ret-longest, longest)
	if b == nil {
		return false
	}
	for _, n := range [...]int{2, 3, 4, 6, 7} {
		c := b[longest-n:]
		if c[0] != 0xff || c[1]>>3&7 != 2 || amd64ModRMLen(c[1:]) != n-1 {
			continue
		}
		if v, ok := amd64Target(mem, r, ret, c[1:], 0, 8); ok && v == to {
			return true
		}
		if rex := b[longest-n-1]; rex&0xf0 == 0x40 {
			if v, ok := amd64Target(mem, r, ret, c[1:], rex, 8); ok && v == to {
				return true
			}
		}
	}
	if b[longest-5] != 0xe8 {
		return false
	}
	callee := ret + Addr(int64(int32(binary.LittleEndian.Uint32(b[longest-4:]))))
	return callee == to || amd64JumpsTo(mem, r, callee, to)
}

// amd64JumpsTo reports whether one of the instructions from pc on jumps to the
// address to, through a register or memory, when r are the registers.
func amd64JumpsTo(mem Memory, r *Regs, pc, to Addr) bool {
	for range 1024 { // more than functions have that do little else
		b := viewUpTo(mem, pc, 15)
		in, ok := amd64Decode(b)
		if !ok {
			return false
		}
		pc += Addr(in.Len)
		b = b[:in.Len]
		if _, direct := in.Args[0].(x86asm.Rel); in.Op != x86asm.JMP || direct {
			continue
		}
		rex := byte(0)
		for len(b) > 2 && b[0] != 0xff { // prefixes: bnd, notrack, REX
			if b[0]&0xf0 == 0x40 {
				rex = b[0]
			}
			b = b[1:]
		}
		if b[0] != 0xff || amd64ModRMLen(b[1:]) != len(b)-1 {
			continue
		}
		if v, ok := amd64Target(mem, r, pc, b[1:], rex, 0); ok && v == to {
			return true
		}
	}
	return false
}

// amd64Target returns the value of the 8-byte operand that the ModRM byte at the
// begin of b names, of a call or jump that ends with b, at next. It has pushed so
// many bytes: a stack pointer in the operand was higher than r has it.
func amd64Target(mem Memory, r *Regs, next Addr, b []byte, rex byte, pushed uint64) (v Addr, ok bool) {
	get := func(number, high byte) uint64 {
		reg := amd64PERegs[number|high<<3]
		x, known := r.Get(reg)
		ok = ok && known
		if reg == amd64RSP {
			x += pushed
		}
		return x
	}
	ok = true
	mod, rm := b[0]>>6, b[0]&7
	if mod == 3 {
		v = Addr(get(rm, rex&1))
		return v, ok
	}
	var at uint64
	disp := b[1:]
	switch {
	case rm == 4:
		sib := b[1]
		disp = b[2:]
		if index := sib >> 3 & 7; index != 4 || rex&2 != 0 {
			at = get(index, rex>>1&1) << (sib >> 6)
		}
		if sib&7 != 5 || mod != 0 {
			at += get(sib&7, rex&1)
		}
	case rm == 5 && mod == 0:
		at = uint64(next) // RIP
	default:
		at = get(rm, rex&1)
	}
	switch len(disp) {
	case 1:
		at += uint64(int64(int8(disp[0])))
	case 4:
		at += uint64(int64(int32(binary.LittleEndian.Uint32(disp))))
	}
	if !ok {
		return 0, false
	}
	w, ok := mem.Word(Addr(at))
	return Addr(w), ok
}

func amd64Straight(mem Memory, from, to Addr) (calls int, ok bool) {
	for from < to {
		in, ok := amd64Decode(viewUpTo(mem, from, 15))
		if !ok {
			return 0, false
		}
		switch in.Op {
		case x86asm.CALL:
			calls++
		case x86asm.JMP, x86asm.RET, x86asm.HLT, x86asm.UD2, x86asm.INT, x86asm.LJMP, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
			return 0, false
		}
		from += Addr(in.Len)
	}
	return calls, from == to
}

// amd64Labels looks for a lea of an address relative to rip that makes pc. Where
// instructions begin is not known, so it is looked for at every byte; that four
// bytes of another instruction are that distance by chance is not to be expected.
func amd64Labels(mem Memory, pc Addr, most int) (yes, known bool) {
	const size = 7 // REX.W 8d, ModRM, 4 bytes of displacement
	b := mem.View(pc-Addr(most), most)
	for i := 0; i+size <= len(b); i++ {
		if b[i]&0xfb == 0x48 && b[i+1] == 0x8d && b[i+2]&0xc7 == 0x05 &&
			int(int32(binary.LittleEndian.Uint32(b[i+3:]))) == most-i-size {
			return true, true
		}
	}
	return false, b != nil
}
