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
// It holds no pointers, so it can be cached and copied freely. What does not
// fit (DWARF expressions, odd register moves) is stepped without a Rule.
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
