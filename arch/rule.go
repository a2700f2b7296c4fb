package arch

// MaxSaved is how many saved registers a Rule has room for: on ARM64 x19 to
// x28, the frame pointer, the link register, SP and PC of an interrupted frame.
const MaxSaved = 14

// A Rule says how to get from a frame to its caller:
//
//	CFA = value of Base + Offset
//	each register in Saved was stored at CFA + its offset
//	every other callee-saved register is unchanged
//	SP of the caller = CFA, unless Saved has it, or NoSP says that it is not known
//
// A Rule holds no pointers, so it can be cached and copied freely. For frames that it
// cannot describe (those with DWARF expressions, or with the return address in a
// register that calls do not keep) the caller's registers are computed each time.
type Rule struct {
	Base   Reg
	N      uint8 // used entries of Saved
	Signal bool  // the caller was interrupted, not calling: its PC is exact
	Signed bool  // the return address carries a pointer authentication code
	NoSP   bool  // the caller's stack pointer is not known; the CFA is the lowest that it can be
	RA     Reg   // register that holds the return address, or NoReg: then it is Saved
	Offset int32 // bytes
	Saved  [MaxSaved]Slot
}

// A Slot is one saved register and where it lies, in bytes from the CFA.
type Slot struct {
	Off int32
	Reg Reg
}

// Save adds a slot to the rule, or replaces the one that r has. It reports
// false when there is no room.
func (r *Rule) Save(reg Reg, off int32) bool {
	for i := range r.Saved[:r.N] {
		if r.Saved[i].Reg == reg {
			r.Saved[i].Off = off
			return true
		}
	}
	if int(r.N) == len(r.Saved) {
		return false
	}
	r.Saved[r.N] = Slot{Off: off, Reg: reg}
	r.N++
	return true
}

// A Caller is what a Rule finds of the caller of a frame. Whether that can be a
// caller, nobody has looked at yet. A Caller is to be used again and again: Find
// overwrites it.
type Caller struct {
	CFA  Addr
	PC   uint64 // the return address as it was found, with its authentication code
	SP   uint64 // the stack pointer; with the rule's NoSP the lowest that it can be
	RAAt Addr   // the slot that PC was read from; 0 if a register held it
	// Vals are the saved registers, in the order of the rule's Saved. Those whose
	// bit in Holes is set could not be read, and are 0.
	Vals  [MaxSaved]uint64
	Holes uint32
}

// Find applies r to a frame: it computes the CFA from the frame's registers, and
// reads what the frame has saved. It reports false, and the register that is not
// known, if regs lack the rule's Base or RA. A saved register whose word is missing
// is 0 in c, PC and SP too, and its bit in Holes says so. Where r says of no place
// that holds the return address, PC and RAAt are 0.
func (r *Rule) Find(a *Arch, regs *Regs, mem Memory, c *Caller) (lacks Reg, ok bool) {
	base, ok := regs.Get(r.Base)
	if !ok {
		return r.Base, false
	}
	cfa := base + uint64(int64(r.Offset))
	pc, sp, raAt, holes := uint64(0), cfa, Addr(0), uint32(0)
	if r.RA != NoReg {
		if pc, ok = regs.Get(r.RA); !ok {
			return r.RA, false
		}
	}
	saved := r.Saved[:r.N]
	vals := c.Vals[:len(saved)]
	for i := range saved {
		at := Addr(cfa + uint64(int64(saved[i].Off)))
		v, ok := mem.Word(at)
		vals[i] = v
		if !ok {
			holes |= 1 << i
		}
		switch saved[i].Reg {
		case a.PC:
			pc, raAt = v, at
		case a.SP:
			sp = v
		}
	}
	c.CFA, c.PC, c.SP, c.RAAt, c.Holes = Addr(cfa), pc, sp, raAt, holes
	return NoReg, true
}

// At returns where the i-th register of r's Saved lies in the frame that c was
// found of.
func (c *Caller) At(r *Rule, i int) Addr { return c.CFA + Addr(int64(r.Saved[i].Off)) }
