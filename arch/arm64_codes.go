package arch

// An arm64Frame is the state while unwind codes run. Offsets count from the
// value that base has at the pc.
type arm64Frame struct {
	base   Reg   // SP, until a set_fp makes it FP
	sp     int64 // where SP was at this point
	slot   [33]int64
	saved  uint64 // registers whose slots are known
	nexts  int    // save_next codes that the next pair takes up
	signed bool   // LR carries a pointer authentication code
	signal bool   // the caller was interrupted
	machn  bool   // PC comes from a machine frame
}

// undo runs the codes from the index k on, after passing over skip of them. It
// returns the index of a code that is wrong, or -1.
func (f *arm64Frame) undo(codes []byte, k int, skip uint32) int {
	for ; skip > 0 && k < len(codes) && codes[k]&0xfe != 0xe4; skip-- {
		k += arm64CodeLen(codes[k])
	}
	for k < len(codes) && codes[k] != 0xe4 {
		n := arm64CodeLen(codes[k])
		if k+n > len(codes) || !f.code(codes[k:k+n]) {
			return k
		}
		k += n
	}
	if f.nexts > 0 {
		return min(k, len(codes))
	}
	return -1
}

// code undoes the instruction that the code c stands for. It reports false where c
// is none, or one that cannot be undone.
func (f *arm64Frame) code(c []byte) bool {
	b := c[0]
	if f.nexts > 0 && (b < 0x20 || b >= 0x40 && b < 0xc8 || b >= 0xd0 && b < 0xd8 || b >= 0xdc && b != 0xe6 && b != 0xe7) {
		return false // save_next goes with pairs only
	}
	if b < 0xdf {
		return f.frameCode(c)
	}
	switch {
	case b == 0xe0: // alloc_l
		f.sp += 16 * (int64(c[1])<<16 | int64(c[2])<<8 | int64(c[3]))
	case b == 0xe1: // set_fp
		return f.rebase(0)
	case b == 0xe2: // add_fp
		return f.rebase(8 * int64(c[1]))
	case b == 0xe3, b == 0xe5: // nop; end_c: the codes of the function that this is a part of follow
	case b == 0xe6: // save_next
		f.nexts++
		return f.nexts < 16
	case b == 0xe7:
		return f.saveAny(c[1], c[2])
	case b == 0xe9: // machine frame: SP, PC
		f.put(arm64SP, f.sp)
		f.put(arm64PC, f.sp+8)
		f.signal, f.machn = true, true
	case b == 0xea: // a CONTEXT
		for _, x := range arm64Fields(8) {
			f.put(x.Reg, f.sp+int64(x.Off))
		}
		f.signal, f.machn = true, true
	case b == 0xec: // clear_unwound_to_call: LR is where the caller goes on, not where it called
		f.signal = true
	case b == 0xfc: // pac_sign_lr
		f.signed = true
	case b >= 0xf8: // reserved for hints: no effect on unwinding
	default:
		// alloc_z (df) depends on the length of SVE vectors; e8 and eb are the
		// kernel's and ARM64EC's; the rest has no meaning yet.
		return false
	}
	return true
}

// frameCode is code for those of one or two bytes that make the frame: they move
// SP down, or save registers, or both (names that end with _x).
func (f *arm64Frame) frameCode(c []byte) bool {
	b, z, z5 := c[0], int64(0), int64(0)
	var x4, x Reg // the register of a two-byte code, when it has two bits in its second byte, or three
	if len(c) == 2 {
		z, z5 = int64(c[1]&63), int64(c[1]&31)
		x4, x = Reg(b&3)<<2|Reg(c[1]>>6), Reg(b&1)<<3|Reg(c[1]>>5)
	}
	switch {
	case b < 0x20: // alloc_s
		f.sp += 16 * int64(b&31)
	case b < 0x40: // save_r19r20_x
		return f.save(arm64X19, 2, -8*int64(b&31))
	case b < 0x80: // save_fplr
		return f.save(arm64FP, 2, 8*int64(b&63))
	case b < 0xc0: // save_fplr_x
		return f.save(arm64FP, 2, -8*int64(b&63+1))
	case b < 0xc8: // alloc_m
		f.sp += 16 * (int64(b&7)<<8 | int64(c[1]))
	case b < 0xcc: // save_regp
		return f.save(arm64X19+x4, 2, 8*z)
	case b < 0xd0: // save_regp_x
		return f.save(arm64X19+x4, 2, -8*(z+1))
	case b < 0xd4: // save_reg
		return f.save(arm64X19+x4, 1, 8*z)
	case b < 0xd6: // save_reg_x
		return f.save(arm64X19+x, 1, -8*(z5+1))
	case b < 0xd8: // save_lrpair
		return f.save(arm64X19+2*(Reg(b&1)<<2|Reg(c[1]>>6)), 1, 8*z) && f.save(arm64LR, 1, 8*z+8)
	case b < 0xda, b >= 0xdc && b < 0xde: // save_fregp, save_freg
		f.nexts = 0
	case b < 0xdc: // save_fregp_x
		f.nexts = 0
		f.sp += 8 * (z + 1)
	default: // save_freg_x
		f.sp += 8 * (z5 + 1)
	}
	return true
}

// save restores n registers from reg on, and two more for each save_next
// before. Where off is negative SP points to them and goes up by -off.
func (f *arm64Frame) save(reg Reg, n int, off int64) bool {
	n += 2 * f.nexts
	f.nexts = 0
	if int(reg)+n > int(arm64SP) {
		return false
	}
	at := f.sp + max(off, 0)
	for ; n > 0; n-- {
		f.put(reg, at)
		reg++
		at += 8
	}
	f.sp -= min(off, 0)
	return true
}

// saveAny is save_any_reg: 0pxrrrrr ffoooooo, p a pair, x pre-indexed, f
// whether of X, D or Q registers (3: of SVE's).
func (f *arm64Frame) saveAny(b1, b2 byte) bool {
	pair, pre, kind := b1>>6&1 != 0, b1>>5&1 != 0, b2>>6
	if b1&0x80 != 0 || kind == 3 || !pair && f.nexts > 0 {
		return false
	}
	n, off := 1, int64(b2&63)
	if pair {
		n = 2
	}
	if pre {
		off = -16 * (off + 1)
	} else if pair || kind == 2 {
		off *= 16
	} else {
		off *= 8
	}
	if kind == 0 {
		return f.save(Reg(b1&31), n, off)
	}
	f.nexts = 0
	f.sp -= min(off, 0)
	return true
}

func (f *arm64Frame) put(reg Reg, at int64) {
	f.slot[reg] = at
	f.saved |= 1 << reg
}

// rebase undoes `add fp, sp, #off`. What lies below is at a fixed distance
// from FP even where the body moves SP, so everything is counted from there.
func (f *arm64Frame) rebase(off int64) bool {
	if f.saved>>arm64FP&1 != 0 {
		return false // FP has been restored already, to the caller's
	}
	if f.base == arm64SP {
		for r := range f.slot {
			f.slot[r] -= f.sp + off
		}
		f.base = arm64FP
	}
	f.sp = -off
	return true
}

// rule writes the rule that f amounts to. It reports false when f does not fit one.
func (f *arm64Frame) rule(r *Rule) bool {
	if f.sp != int64(int32(f.sp)) {
		return false
	}
	*r = Rule{Base: f.base, RA: NoReg, Offset: int32(f.sp), Signal: f.signal, Signed: f.signed}
	put := func(as, reg Reg) bool {
		if f.saved>>reg&1 == 0 {
			return true
		}
		off := f.slot[reg] - f.sp
		return off == int64(int32(off)) && r.Save(as, int32(off))
	}
	switch {
	case f.machn:
		if !put(arm64PC, arm64PC) || !put(arm64SP, arm64SP) || !put(arm64LR, arm64LR) {
			return false
		}
	case f.saved>>arm64LR&1 == 0:
		r.RA = arm64LR
	case !put(arm64PC, arm64LR):
		return false
	}
	for reg := arm64X19; reg <= arm64FP; reg++ {
		if !put(reg, reg) {
			return false
		}
	}
	return true
}
