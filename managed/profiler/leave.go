package profiler

import (
	"math/bits"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// An unwindResult says how leaving a managed frame ended.
type unwindResult uint8

const (
	unwound unwindResult = iota
	unwindNoInfo
	unwindNoWord
	unwindNoMethod
	unwindNoFrame
	unwindNoPlace
	unwindNoCode
	unwindNoName
)

var unwindTexts = [...]string{
	unwindNoInfo:   "a managed method's unwind information cannot be read",
	unwindNoWord:   "a word of the stack cannot be read",
	unwindNoMethod: "it cannot be found out which method a frame is of",
	unwindNoFrame:  "what an explicit Frame has saved cannot be read",
	unwindNoPlace:  "without its code it cannot be found out where in a method a frame was interrupted",
	unwindNoCode:   "it cannot be found out whether a pc is in managed code",
	unwindNoName:   "it cannot be found out whether a profiler is shown a frame",
}

// unwind leaves the managed frame with regs, which stands in code c, and sets in out
// the registers of its caller. If that fails, how says why, and at is the address of
// what is missing or wrong.
func (n *Snapshotter) unwind(c *snapshotCode, regs, out *arch.Regs) (at arch.Addr, how unwindResult) {
	r := &c.rule
	if c.outcome != unwind.UseRule {
		if !c.orphan {
			return c.why.At, unwindNoInfo
		}
		// The header of the method is missing: its code says how it is left, and
		// whether that holds for this frame only.
		once, ok := n.rt.OrphanBodyRule(&c.code, c.pc, regs, r)
		if !ok {
			return c.why.At, unwindNoInfo
		}
		if !once {
			c.outcome = unwind.UseRule
		}
	}
	if c.code.Method == 0 {
		return c.missing, unwindNoMethod
	}
	if c.behindCall && n.walk.exact && !n.called(regs) {
		return c.why.At, unwindNoPlace
	}
	to := &n.caller
	if _, ok := r.Find(n.a, regs, n.mem, to); !ok {
		return c.why.At, unwindNoInfo // no rule has a register that a walk does not know
	}
	if to.Holes != 0 {
		return to.At(r, bits.TrailingZeros32(to.Holes)), unwindNoWord
	}
	n.restore(r, regs, out)
	return 0, unwound
}

// restore sets in out the registers of the caller in n.caller, which r has found of
// the frame with regs. What the frame has not saved keeps its value in the runtime's
// own walk, registers that calls do not preserve among them.
func (n *Snapshotter) restore(r *arch.Rule, regs, out *arch.Regs) {
	to := &n.caller
	*out = *regs
	saved := r.Saved[:r.N]
	vals := to.Vals[:len(saved)]
	for i := range saved {
		out.Set(saved[i].Reg, vals[i])
	}
	pc := arch.Addr(to.PC)
	// Before it walks, the runtime puts back a return address that it has
	// hijacked.
	if t := n.walk.thread; to.RAAt == t.HijackSlot && to.RAAt != 0 {
		pc = t.HijackReturn
	}
	if r.Signed {
		pc = n.a.Strip(pc)
	}
	out.Set(n.a.PC, uint64(pc))
	out.Set(n.a.SP, to.SP)
	if n.a.LR != arch.NoReg {
		out.Set(n.a.LR, uint64(pc)) // so unwinding leaves it
	}
}

// called reports whether the frame that regs are of has called: a call that has
// returned leaves its return address below the stack pointer.
func (n *Snapshotter) called(regs *arch.Regs) bool {
	v, ok := n.mem.Word(n.spOf(regs) - arch.Addr(n.a.Word))
	return ok && arch.Addr(v) == n.pcOf(regs)
}
