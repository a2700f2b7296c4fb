package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// A chain is a thread's list of explicit Frames, from the newest on.
type chain struct {
	rt   *clr.Runtime
	next arch.Addr
	n    int
}

// maxChain bounds a chain. A stack of 8 MiB has room for as many Frames of the
// smallest kind.
const maxChain = 1 << 18

// pop returns the next Frame. A Frame lies above all newer ones; where the
// chain turns back it is broken, and ends.
func (c *chain) pop() (f clr.Frame, ok bool) {
	if c.rt == nil || c.next == clr.EndOfFrames || c.next == 0 || c.n >= maxChain {
		return f, false
	}
	if f, ok = c.rt.FrameAt(c.next); !ok {
		c.next = clr.EndOfFrames
		return f, false
	}
	c.n++
	if c.next = f.Next; f.Next <= f.Addr {
		c.next = clr.EndOfFrames
	}
	return f, true
}

// rescue goes on where the walk could not: at the frame that the saved frame
// pointer leads to, if that is plausible, or at the one that the next explicit
// Frame holds, whichever is nearer. It reports whether the walk goes on.
func (w *Walker) rescue() bool {
	sp, _ := w.native.Regs().Get(w.s.Process.Arch.SP)
	fp, fpOK := w.byFramePointer(arch.Addr(sp))
	w.regs = fp
	exact, by := false, unwind.ByFramePointer
	c := w.chain
	for {
		f, ok := c.pop()
		if !ok {
			break
		}
		var regs arch.Regs
		ex, ok := w.rt.Restore(f, &regs)
		if !ok {
			continue
		}
		at, _ := regs.Get(w.s.Process.Arch.SP)
		if at <= sp {
			w.chain = c // passed: not to be looked at again
			continue
		}
		if f.Kind == clr.InlinedCallFrame { // what others hold is exact
			if at = w.settle(&regs, sp); at <= sp {
				w.chain = c // the frame that the walk is at
				continue
			}
		}
		if near, _ := w.regs.Get(w.s.Process.Arch.SP); !fpOK || at < near {
			w.regs, exact, by, fpOK = regs, ex, unwind.ByExplicitFrame, true
		}
		break
	}
	return fpOK && w.native.Resume(&w.regs, exact, by)
}

// maxSettle bounds the search of settle, in words: what a method may have
// pushed or allocated between setting up its Frame and calling.
const maxSettle = 512

// maxCallApart is how far apart the two calls around a P/Invoke may be: 9 to
// 43 bytes were seen.
const maxCallApart = 256

// settle corrects the stack pointer in regs, which are what an explicit Frame
// holds, and returns it. A method notes its stack pointer when it sets up its
// InlinedCallFrame, and may lower it before it calls, by stackalloc or for
// arguments; its unwind codes count from where it was at the call. There the
// return address lies right below it. The one in the Frame may be that of the
// call before, as in the runtime's own Monitor.Wait and WaitOneNoCheck. sp is
// that of the frame before.
func (w *Walker) settle(regs *arch.Regs, sp uint64) uint64 {
	a, mem := w.s.Process.Arch, w.s.Process.Memory
	pc, _ := regs.Get(a.PC)
	noted, _ := regs.Get(a.SP)
	if a.LR != arch.NoReg {
		return noted // a call pushes nothing there
	}
	word := uint64(a.Word)
	if v, ok := mem.Word(arch.Addr(noted - word)); ok && v > pc && v-pc <= maxCallApart {
		if in := w.lookup(arch.Addr(v) - 1).code; in.Managed() && in.Body == w.lookup(arch.Addr(pc)-1).code.Body {
			regs.Set(a.PC, v)
			return noted
		}
	}
	for at, n := noted, 0; n < maxSettle && at >= sp && at <= noted; at, n = at-word, n+1 {
		v, ok := mem.Word(arch.Addr(at - word))
		if !ok {
			break // it may have been this one
		}
		if v == pc {
			regs.Set(a.SP, at)
			return at
		}
	}
	return noted
}

// byFramePointer follows the frame pointer of the frame that the walk is at,
// which the runtime's and the JIT's code keep up, and returns the registers of
// the frame it leads to. That must be behind a call, in code that somebody
// knows.
func (w *Walker) byFramePointer(sp arch.Addr) (regs arch.Regs, ok bool) {
	a, mem := w.s.Process.Arch, w.s.Process.Memory
	rule := &a.FramePointer
	fp, ok := w.native.Regs().Get(rule.Base)
	if !ok || arch.Addr(fp) < sp || fp%uint64(a.Word) != 0 {
		return regs, false
	}
	cfa := fp + uint64(rule.Offset)
	for _, slot := range rule.Saved[:rule.N] {
		v, ok := mem.Word(arch.Addr(cfa + uint64(int64(slot.Off))))
		if !ok {
			return regs, false
		}
		regs.Set(slot.Reg, v)
	}
	regs.Set(a.SP, cfa)
	pc, _ := regs.Get(a.PC)
	ret := a.Strip(arch.Addr(pc))
	if !w.known(ret-1) || !a.AfterCall(mem, ret) {
		return regs, false
	}
	regs.Set(a.PC, uint64(ret))
	return regs, true
}

// known reports whether pc lies in managed code or in an image.
func (w *Walker) known(pc arch.Addr) bool {
	return w.lookup(pc).code.Managed() || w.s.Process.ImageAt(pc) != nil
}
