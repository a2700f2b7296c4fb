package arch

import "math/bits"

// A Reg numbers a register the way DWARF numbers it on that CPU.
type Reg uint8

// NoReg stands where a CPU has no such register.
const NoReg Reg = 0xff

// MaxRegs bounds the register numbers of every known CPU.
const MaxRegs = 40

// A RegSet is a set of registers, one bit each.
type RegSet uint64

// Regset returns the set of the given registers.
func Regset(rs ...Reg) (s RegSet) {
	for _, r := range rs {
		s |= 1 << r
	}
	return s
}

// Has reports whether r is in s.
func (s RegSet) Has(r Reg) bool { return r < MaxRegs && s>>r&1 != 0 }

// Regs are the registers of one frame. A register that is not known has no
// value; it is never taken to be zero.
type Regs struct {
	val   [MaxRegs]uint64
	known RegSet
}

// Get returns the value of n, and whether it is known.
func (r *Regs) Get(n Reg) (v uint64, known bool) {
	if !r.known.Has(n) {
		return 0, false
	}
	return r.val[n], true
}

// Set makes v the known value of n.
func (r *Regs) Set(n Reg, v uint64) {
	if n < MaxRegs {
		r.val[n] = v
		r.known |= 1 << n
	}
}

// Forget makes n unknown.
func (r *Regs) Forget(n Reg) {
	if n < MaxRegs {
		r.known &^= 1 << n
	}
}

// Keep forgets every register that is not in set.
func (r *Regs) Keep(set RegSet) { r.known &= set }

// Known returns the set of registers whose values are known.
func (r *Regs) Known() RegSet { return r.known }

// Len returns how many registers are known.
func (r *Regs) Len() int { return bits.OnesCount64(uint64(r.known)) }
