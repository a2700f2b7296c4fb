package arch

const (
	arm64Steps = 64    // bounds how many instructions Leave follows, over all branches
	arm64Near  = 16384 // bytes; see amd64Near
)

// An arm64Path is the state of the CPU along one way through the code.
type arm64Path struct {
	reg [32]codeValue // 31 is SP
	stores
	pushed int64 // bytes that a PLT has pushed before
	signs  int   // pac instructions that no aut has taken back
	signed bool  // LR, or the word that it is loaded from, was signed at the start
}

// arm64Leave is amd64Leave for ARM64: the return address is in LR unless this
// code has it on the stack and takes it back.
func arm64Leave(mem Memory, pc Addr, r *Rule) bool {
	p := arm64Start()
	p.pushed = arm64PLTPushed(mem, pc)
	steps := arm64Steps
	return p.follow(mem, pc, &steps, r)
}

// arm64Start returns the state in which every register has what it had at the start.
func arm64Start() (p arm64Path) {
	for i := range p.reg {
		p.reg[i] = codeValue{valueSum, Reg(i), 0}
	}
	return p
}

// arm64PLTPushed returns how many bytes lie on the stack when pc is inside the
// first entry of a PLT, which all that bind lazily come through: it pushes x16
// and LR and jumps to the dynamic linker (Sysv ABI for the Arm 64-bit
// Architecture, PLT sequences).
func arm64PLTPushed(mem Memory, pc Addr) int64 {
	for k := Addr(4); k <= 16; k += 4 {
		if w, ok := arm64Word(mem, pc-k); ok && w == 0xa9bf7bf0 { // stp x16, x30, [sp, #-16]!
			w, ok = arm64Word(mem, pc-k+4)
			w2, ok2 := arm64Word(mem, pc-k+16)
			if ok && ok2 && w&0x9f00001f == 0x90000010 && w2 == 0xd61f0220 { // adrp x16; br x17
				return 16
			}
		}
	}
	return 0
}

// follow runs the instructions at pc. It writes r when it finds the way out.
func (p *arm64Path) follow(mem Memory, pc Addr, steps *int, r *Rule) bool {
	for ; *steps > 0; *steps-- {
		w, ok := arm64Word(mem, pc)
		if !ok {
			return false
		}
		next := pc + 4
		by, conditional := arm64Branch(w)
		switch {
		case w&0xfffffc1f == 0xd65f0000: // ret
			return p.leave(returns, p.reg[w>>5&31], r)
		case w&0xfffffbff == 0xd65f0bff: // retaa, retab
			p.authenticate()
			return p.leave(returns, p.reg[arm64LR], r)
		case w&0xfffffc1f == 0xd61f0000, w&0xfefff800 == 0xd61f0800: // br, braa
			if p.isSwitch(mem, pc, Reg(w>>5&31)) {
				return false
			}
			return p.leave(jumpsOut, p.reg[arm64LR], r)
		case w>>26 == 5: // b
			*steps--
			to := pc + arm64Jump(w)
			if there := *p; there.follow(mem, to, steps, r) {
				return true
			}
			return to-pc+arm64Near > 2*arm64Near && p.leave(jumpsOut, p.reg[arm64LR], r)
		case arm64IsCall(w), w>>16 == 0, w>>24 == 0xd4 && w&0x1f != 1, w>>25 == 0x6b: // calls, udf, brk and hlt, eret
			return false
		case w == 0xd4000001: // svc #0
			if before, ok := arm64Word(mem, pc-4); ok && before == 0xd2801168 {
				return false // mov x8, #139: rt_sigreturn does not come back
			}
			p.set(0, codeValue{})
		case conditional:
			*steps--
			if on := *p; on.follow(mem, next, steps, r) {
				return true
			}
			next = pc + Addr(by)
		default:
			p.run(w)
		}
		pc = next
	}
	return false
}

// isSwitch reports whether a jump through reg goes to another part of the same
// function, as a switch does, and not out of it. A switch computes the address. If reg
// was set before the first instruction that was followed, nothing shows how: then it
// is taken for a switch if an add is right before pc, or if reg is one of x0 to x8,
// which stubs do not jump through.
func (p *arm64Path) isSwitch(mem Memory, pc Addr, reg Reg) bool {
	v := p.reg[reg]
	if v != (codeValue{valueSum, reg, 0}) {
		return v.kind == valueUnknown
	}
	before, ok := arm64Word(mem, pc-4)
	return reg < 9 || ok && before&0x7f000000 == 0x0b000000 && Reg(before&31) == reg // add
}

func (p *arm64Path) authenticate() {
	if p.signs > 0 {
		p.signs--
	} else {
		p.signed = true
	}
}

// leave writes the rule for a path that ends in a return to ra, or in a jump to
// code that will go there.
func (p *arm64Path) leave(by wayOut, ra codeValue, r *Rule) bool {
	sp := p.reg[arm64SP]
	if sp.kind != valueSum || sp.off != int64(int32(sp.off)) || sp.reg != arm64SP && sp.reg != arm64FP {
		return false // longjmp, for one, has SP from somewhere else
	}
	if by == jumpsOut && sp.reg == arm64SP && sp.off < p.pushed {
		// What was pushed and not popped are arguments of the code jumped to.
		sp.off = p.pushed
	}
	for _, s := range p.stored[:p.n] {
		if s.at.reg != sp.reg {
			return false // whether this was loaded back since cannot be told
		}
	}
	out := Rule{Base: sp.reg, RA: NoReg, Offset: int32(sp.off), Signed: p.signed}
	save := func(as Reg, v codeValue) bool {
		off := v.off - sp.off
		return v.kind == valueLoad && v.reg == sp.reg && off == int64(int32(off)) && out.Save(as, int32(off))
	}
	if ra.kind == valueSum && ra.off == 0 && ra.reg != arm64SP {
		out.RA = ra.reg // LR, but for the outlined prologues that keep it in another
	} else if !save(arm64PC, ra) {
		return false
	}
	for reg := arm64X19; reg <= arm64FP; reg++ {
		if v := p.reg[reg]; v != (codeValue{valueSum, reg, 0}) && !save(reg, v) {
			return false // this code is no function: it does not keep what a caller counts on
		}
	}
	*r = out
	return true
}

// set writes a register that an instruction names as its result. There, 31 is
// the zero register.
func (p *arm64Path) set(reg uint32, v codeValue) {
	if reg != 31 {
		p.reg[reg] = v
	}
}

// store notes that the 8 bytes at at were written.
func (p *arm64Path) store(at, v codeValue) {
	p.put(at, v, p.reg[arm64SP].reg, arm64FP)
}

// value returns what a register holds that an instruction stores.
func (p *arm64Path) value(reg uint32) codeValue {
	if reg == 31 {
		return codeValue{}
	}
	return p.reg[reg]
}

// run changes the state as an instruction does that is no jump. The classes
// are those of the Arm Architecture Reference Manual, section C4.1.
func (p *arm64Path) run(w uint32) {
	rd, rn := w&31, w>>5&31
	switch {
	case arm64Signs(w):
		p.signs++
	case arm64Authenticates(w):
		p.authenticate()
	case w&0xfffff01f == 0xd503201f: // other hints: nop, bti
	case w&0xfff00000 == 0xd5300000: // mrs
		p.set(rd, codeValue{})
	case w>>24 == 0xd5: // barriers, msr
	case w&0x1f000000 == 0x11000000: // add, sub with an immediate
		v, imm := codeValue{}, int64(w>>10&0xfff)<<(12*(w>>22&1))
		if w>>30&1 != 0 {
			imm = -imm
		}
		if w>>31 != 0 {
			v = p.reg[rn].moved(imm)
		}
		if w>>29&1 != 0 { // adds, subs: 31 is the zero register
			p.set(rd, v)
		} else {
			p.reg[rd] = v
		}
	case w&0xffe0ffe0 == 0xaa0003e0: // mov
		p.set(rd, p.value(w>>16&31))
	case w>>26&7 == 4: // other instructions with immediates
		if w&0x1f800000 == 0x12000000 && w>>29&3 != 3 { // and, orr, eor: 31 is SP
			p.reg[rd] = codeValue{}
		} else {
			p.set(rd, codeValue{})
		}
	case w>>25&7 == 5: // instructions on registers
		if w&0x1fe00000 == 0x0b200000 && w>>29&1 == 0 { // add, sub extended: 31 is SP
			p.reg[rd] = codeValue{}
		} else {
			p.set(rd, codeValue{})
		}
	case w&0xffe0f800 == 0x04205000: // addvl, addpl: by the length of SVE vectors
		p.reg[rd] = codeValue{}
	case w>>25&5 == 4: // loads and stores
		p.access(w)
	case w&0x5f20fc00 == 0x0e003c00: // umov
		p.set(rd, codeValue{})
	case w&0x7f20fc00 == 0x1e200000: // fcvt and fmov, but those to a vector register
		if op := w >> 16 & 7; op != 2 && op != 3 && op != 7 {
			p.set(rd, codeValue{})
		}
	}
}

// access runs a load or a store.
func (p *arm64Path) access(w uint32) {
	vector := arm64Vector(w)
	switch w >> 27 & 7 {
	case 5:
		p.accessPair(w)
	case 7:
		p.accessOne(w)
	case 3: // literal
		if !vector && w>>30 != 3 {
			p.set(w&31, codeValue{kind: valueElsewhere})
		}
	case 1: // exclusive, ordered, compare and swap
		if !vector {
			p.set(w>>16&31, codeValue{})
			if w>>22&1 != 0 { // a load
				p.set(w&31, codeValue{})
				p.set(w>>10&31, codeValue{})
			}
		} else if w>>23&1 != 0 && w>>31 == 0 { // vectors, with the address written back
			p.reg[w>>5&31] = codeValue{}
		}
	}
}

// arm64Vector reports whether a load or a store is of vector registers.
func arm64Vector(w uint32) bool { return w>>26&1 != 0 }

// accessPair runs a load or a store of two registers: ldp, stp and their kin.
func (p *arm64Path) accessPair(w uint32) {
	rt, rn, rt2 := w&31, w>>5&31, w>>10&31
	load, whole := w>>22&1 != 0, w>>30 == 2 // whole: 8 bytes each
	vector, size := arm64Vector(w), int64(4)<<(w>>31)
	if vector {
		size = 4 << (w >> 30)
	}
	mode, imm := w>>23&3, int64(int32(w<<10)>>25)*size
	at := p.reg[rn]
	from := at
	if mode != 1 { // not post-indexed
		from = at.moved(imm)
	}
	switch {
	case vector:
	case load && whole:
		a, b := p.load(from), p.load(from.moved(8))
		p.set(rt, a)
		p.set(rt2, b)
	case load:
		p.set(rt, codeValue{})
		p.set(rt2, codeValue{})
	case whole:
		p.store(from, p.value(rt))
		p.store(from.moved(8), p.value(rt2))
	default:
		p.store(from, codeValue{})
	}
	if mode&1 != 0 {
		p.reg[rn] = at.moved(imm)
	}
}

// accessOne runs a load or a store of one register, atomic ones among them.
func (p *arm64Path) accessOne(w uint32) {
	rt, size, opc := w&31, w>>30, w>>22&3
	from, back, writesBack := p.place(w)
	scaled := w>>24&1 != 0
	indexed := !scaled && w>>21&1 != 0
	atomic := indexed && w>>10&3 != 2
	switch {
	case arm64Vector(w):
	case atomic:
		p.set(rt, codeValue{})
	case opc == 0:
		v := codeValue{}
		if size == 3 {
			v = p.value(rt)
		}
		p.store(from, v)
	case size == 3 && opc == 1 && !indexed:
		p.set(rt, p.load(from))
	case size != 3 || opc != 2: // 3 and 2: prefetch
		p.set(rt, codeValue{})
	}
	if writesBack {
		p.reg[w>>5&31] = back
	}
}

// place returns the address that a load or a store of one register accesses and,
// where it writes an address back to the register that it took it from, that
// address.
func (p *arm64Path) place(w uint32) (from, back codeValue, writesBack bool) {
	at := p.reg[w>>5&31]
	switch {
	case w>>24&1 != 0: // an unsigned offset, in units of the size
		return at.moved(int64(w>>10&0xfff) << (w >> 30)), back, false
	case w>>21&1 != 0: // an offset in a register (so do switches load where they jump to), atomic
		return from, back, false
	}
	back = at.moved(int64(int32(w<<11) >> 23))
	switch w >> 10 & 3 {
	case 0: // unscaled
		from = back
	case 1: // post-indexed
		from, writesBack = at, true
	case 3: // pre-indexed
		from, writesBack = back, true
	}
	return from, back, writesBack
}
