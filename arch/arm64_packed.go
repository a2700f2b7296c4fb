package arch

// arm64MaxPacked is room for the codes of the longest packed word: 38 bytes
// for the prologue, and as many for the epilogue.
const arm64MaxPacked = 2 * 38

// How a function of a packed word keeps its frame pointer and its return address
// (field CR of "Packed unwind data").
const (
	arm64CRNone    = 0 // neither: it is a leaf, or keeps them otherwise
	arm64CRSavesLR = 1 // the return address, among the other registers
	arm64CRSigned  = 2 // as arm64Chained, and it signs the return address first
	arm64CRChained = 3 // both, as the frame record that FP then points to
)

// An arm64Packing writes the unwind codes that a packed word stands for. A code
// undoes one instruction of the prologue, and codes are listed from the last
// instruction to the first: they are written from the end of made backwards, in
// the order in which the prologue runs. Sizes are in words of 8 bytes.
type arm64Packing struct {
	made *[arm64MaxPacked]byte
	at   int // index of the code that was written last

	ints   int // registers saved from x19 on
	floats int // registers saved from d8 on
	cr     uint32
	size   int // of the area that registers are saved in
	local  int // of the rest of the frame

	slot int  // where in the area the next register is saved
	down bool // an instruction has moved SP down by size
}

// arm64Unpack makes the codes that the packed word w stands for ("Packed unwind
// data" of "ARM64 exception handling"), in the room made.
func arm64Unpack(w uint32, made *[arm64MaxPacked]byte) (i arm64Info) {
	p := arm64Packing{made: made, at: len(made), ints: int(w >> 16 & 15), cr: w >> 21 & 3}
	if n := int(w >> 13 & 7); n > 0 {
		p.floats = n + 1
	}
	p.size = p.ints + p.floats
	if p.cr == arm64CRSavesLR {
		p.size++
	}
	homes := w>>20&1 != 0 // the arguments in x0 to x7 are stored too
	if homes && p.size > 0 {
		p.size += 8
	}
	p.size = (p.size + 1) &^ 1
	p.local = int(w>>23)*2 - p.size

	p.emit(0xe4) // end
	if p.cr == arm64CRSigned {
		p.emit(0xfc) // pac_sign_lr
	}
	p.saveInts()
	p.saveFloats()
	end := p.at
	if homes && p.down {
		p.emit(0xe3, 0xe3, 0xe3, 0xe3) // nop, one for each pair of arguments
	}
	begin := p.at
	setsFP := p.allocLocals()
	i.length, i.last = w>>2&0x7ff, -1
	if w&3 == arm64Fragment {
		p.emit(0xe5) // end_c: the rest of the prologue was done elsewhere
		i.codes = made[p.at:]
		return i
	}
	// The epilogue undoes all of it but the stores of arguments and the setting of
	// FP, which have moved no register. Its codes are put behind those of the prologue.
	from, n := p.at, len(made)-p.at
	copy(made[:], made[from:])
	to := n
	for k := range n {
		if argument := begin <= from+k && from+k < end; !argument && (k > 0 || !setsFP) {
			made[to] = made[k]
			to++
		}
	}
	i.codes, i.last = made[:to], n
	return i
}

// emit writes codes in front of the codes that have been written.
func (p *arm64Packing) emit(codes ...byte) {
	p.at -= len(codes)
	copy(p.made[p.at:], codes)
}

// alloc writes that SP is moved down by n words, 4080 bytes at a time.
func (p *arm64Packing) alloc(n int) {
	const most = 4080 / 8
	for ; n > 0; n -= min(n, most) {
		p.emit(0xc0|byte(min(n, most)/2>>8), byte(min(n, most)/2)) // alloc_m
	}
}

// savePair writes that two registers are saved: by the code plain, or by first
// if that instruction moves SP down too. x is the number of the first, counted
// from the first that the code can save.
func (p *arm64Packing) savePair(plain, first byte, x int) {
	if !p.down {
		p.emit(first|byte(x>>2), byte(x<<6)|byte(p.size-1)&63)
	} else {
		p.emit(plain|byte(x>>2), byte(x<<6)|byte(p.slot))
	}
	p.slot, p.down = p.slot+2, true
}

// saveOne is savePair for a single register.
func (p *arm64Packing) saveOne(plain, first byte, x int) {
	if !p.down {
		p.emit(first|byte(x>>3), byte(x<<5)|byte(p.size-1)&31)
	} else {
		p.emit(plain|byte(x>>2), byte(x<<6)|byte(p.slot))
	}
	p.slot, p.down = p.slot+1, true
}

// saveInts writes how the registers from x19 on are saved, and LR if it is among
// them.
func (p *arm64Packing) saveInts() {
	if p.ints == 1 && p.cr == arm64CRSavesLR { // there is no code for x19 and LR that moves SP
		p.alloc(p.size)
		p.down = true
	}
	x := 0
	for ; x+1 < p.ints; x += 2 {
		p.savePair(0xc8, 0xcc, x) // save_regp, save_regp_x
	}
	switch odd := p.ints&1 != 0; {
	case odd && p.cr == arm64CRSavesLR:
		p.emit(0xd6|byte(x/2>>2), byte(x/2<<6)|byte(p.slot)) // save_lrpair
		p.slot += 2
	case odd:
		p.saveOne(0xd0, 0xd4, x) // save_reg, save_reg_x
	case p.cr == arm64CRSavesLR:
		p.saveOne(0xd0, 0xd4, int(arm64LR-arm64X19))
	}
}

// saveFloats writes how the registers from d8 on are saved.
func (p *arm64Packing) saveFloats() {
	x := 0
	for ; x+1 < p.floats; x += 2 {
		p.savePair(0xd8, 0xda, x) // save_fregp, save_fregp_x
	}
	if p.floats&1 != 0 {
		p.saveOne(0xdc, 0xde, x) // save_freg, save_freg_x
	}
}

// allocLocals writes how the rest of the frame is made, with the frame record at
// its foot if there is one, and reports whether FP is then set to it.
func (p *arm64Packing) allocLocals() (setsFP bool) {
	switch {
	case p.local <= 0:
		return false
	case p.cr < arm64CRSigned:
		p.alloc(p.local)
		return false
	case p.local <= 512/8:
		p.emit(0x80 | byte(p.local-1)) // save_fplr_x
	default:
		p.alloc(p.local)
		p.emit(0x40) // save_fplr
	}
	p.emit(0xe1) // set_fp
	return true
}
