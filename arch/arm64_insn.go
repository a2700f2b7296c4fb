package arch

import "encoding/binary"

// arm64Word returns the instruction at a.
func arm64Word(mem Memory, a Addr) (w uint32, ok bool) {
	b := mem.View(a, 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// arm64AfterCall looks for bl, blr or one of blraa, blraaz, blrab and blrabz
// before a. A word that is missing rules out nothing.
func arm64AfterCall(mem Memory, a Addr) bool {
	w, ok := arm64Word(mem, a-4)
	return !ok || arm64IsCall(w)
}

func arm64IsCall(w uint32) bool {
	return w>>26 == 0x25 || w&0xfffffc1f == 0xd63f0000 || w&0xfefff800 == 0xd63f0800
}

// arm64CallTo works out where bl, blr and blraa and their kin go. One that calls
// through LR has overwritten what it went by.
func arm64CallTo(mem Memory, r *Regs, ret, to Addr) bool {
	w, ok := arm64Word(mem, ret-4)
	if !ok || !arm64IsCall(w) {
		return false
	}
	if w>>26 == 0x25 {
		return ret-4+arm64Jump(w) == to
	}
	reg := Reg(w >> 5 & 31)
	v, ok := r.Get(reg)
	return ok && reg < arm64LR && (Addr(v) == to || arm64Strip(Addr(v)) == arm64Strip(to))
}

func arm64Straight(mem Memory, from, to Addr) (calls int, ok bool) {
	for ; from < to; from += 4 {
		w, ok := arm64Word(mem, from)
		switch {
		case !ok:
			return 0, false
		case arm64IsCall(w):
			calls++
		case w>>26 == 5, w>>25 == 0x6b, w>>16 == 0, w>>24 == 0xd4 && w&0x1f == 0: // b; br, ret and their kin; udf; brk, hlt
			return 0, false
		}
	}
	return calls, from == to
}

// arm64Jump returns by how much b and bl jump.
func arm64Jump(w uint32) Addr { return Addr(int64(int32(w<<6)>>6) * 4) }

// arm64Immediate returns the immediate of adr, in bytes, or of adrp, in pages.
func arm64Immediate(w uint32) int64 { return int64(int32(w<<8)>>13)<<2 | int64(w>>29&3) }

// arm64Branch tells conditional branches (b.cond, cbz, tbz and their kin), and
// by how much they jump.
func arm64Branch(w uint32) (by int64, ok bool) {
	switch {
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // b.cond, bc.cond; cbz, cbnz
		return int64(int32(w<<8)>>13) * 4, true
	case w>>25&0x3f == 0x1b: // tbz, tbnz
		return int64(int32(w<<13)>>18) * 4, true
	}
	return 0, false
}

// arm64Signs tells the instructions that sign LR.
func arm64Signs(w uint32) bool {
	return w&0xffffff9f == 0xd503231f || // paciaz, paciasp, pacibz, pacibsp
		w&0xfffff81f == 0xdac1001e || w&0xfffff81f == 0xdac1041e // pacia, pacib with LR
}

// arm64Authenticates tells those that make a signed LR plain again.
func arm64Authenticates(w uint32) bool {
	return w&0xffffff9f == 0xd503239f || // autiaz, autiasp, autibz, autibsp
		w == 0xd50320ff || // xpaclri
		w&0xfffff81f == 0xdac1101e || w&0xfffff81f == 0xdac1141e // autia, autib with LR
}

// arm64Labels looks for an adr that makes pc.
func arm64Labels(mem Memory, pc Addr, most int) (yes, known bool) {
	b := mem.View(pc-Addr(most), most)
	for i := 0; i+4 <= len(b); i += 4 {
		w := binary.LittleEndian.Uint32(b[i:])
		if w&0x9f000000 == 0x10000000 && arm64Immediate(w) == int64(most-i) {
			return true, true
		}
	}
	return false, b != nil
}
