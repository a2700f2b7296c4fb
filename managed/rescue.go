package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// maxSearch bounds what the searches of one walk look at together, in words;
// frameWords is what an explicit Frame counts for. Each search has a bound of its
// own, but a forged stack can ask for one at each of a million frames. A rescue of
// a real stack looks at some ten words a frame.
const (
	maxSearch  = 1 << 26
	frameWords = 64
)

// A rescue is a frame that a walk can go on from where it cannot leave the one
// that it is at.
type rescue struct {
	regs  arch.Regs // without the stack pointer where that is not known
	low   arch.Addr // the stack pointer is not below this
	exact bool
	by    unwind.By
}

// rescue goes on where the walk could not: at the frame that the saved frame
// pointer leads to, if that is plausible, or at the one that the next explicit
// Frame holds, whichever is nearer. It reports whether the walk goes on.
func (w *Walker) rescue() bool {
	to, ok := w.byFramePointer()
	if f, found := w.byFrames(); found && (!ok || f.low <= to.low || w.samePC(&f, &to)) {
		to, ok = f, true
	}
	return ok && w.native.Resume(&to.regs, to.low, to.exact, to.by)
}

// at reports whether the walk is at the very frame that to describes: one with
// the same frame pointer, in the same body of code.
func (w *Walker) at(to *rescue) bool {
	a := w.s.Process.Arch
	fp, ok1 := to.regs.Get(a.FP)
	pc, _ := to.regs.Get(a.PC)
	now, ok2 := w.native.Regs().Get(a.FP)
	return ok1 && ok2 && fp == now && w.lookup(w.native.Frame().PC.Lookup()).code.Body == w.lookup(arch.Addr(pc)-1).code.Body
}

// samePC reports whether both lead to the same place in code.
func (w *Walker) samePC(x, y *rescue) bool {
	a, _ := x.regs.Get(w.s.Process.Arch.PC)
	b, _ := y.regs.Get(w.s.Process.Arch.PC)
	return a == b
}

// byFrames finds the frame that the next explicit Frame holds.
func (w *Walker) byFrames() (to rescue, ok bool) {
	a, low := w.s.Process.Arch, w.native.Low()
	to.by = unwind.ByExplicitFrame
	for c := w.chain; ; {
		f, ok := c.Pop()
		if w.left -= frameWords; !ok || w.left < 0 {
			return to, false
		}
		// By way of w, or to would be allocated.
		if to.exact, ok = w.frames.Restore(f, &w.regs); !ok {
			continue
		}
		to.regs = w.regs
		sp, _ := to.regs.Get(a.SP)
		if to.low = arch.Addr(sp); to.low > low && f.Roughly { // what others hold is exact
			if w.at(&to) {
				to.low = low
			} else {
				ok = w.called(&to, low)
			}
		}
		if to.low <= low {
			w.chain = c // passed: not to be looked at again
			continue
		}
		if pc, _ := to.regs.Get(a.PC); ok && (to.exact || w.s.code(arch.PC{Addr: arch.Addr(pc)})) {
			return to, true
		}
	}
}

// maxSettle bounds the search of called, in words: what a method may have
// pushed or allocated between setting up its Frame and calling.
const maxSettle = 512

// maxCallApart is how far apart the two calls around a P/Invoke may be, in bytes
// of code: 9 to 43 were seen.
const maxCallApart = 256

// called corrects what an InlinedCallFrame holds of the method that has called
// native code, and reports whether it is then known where that method stands.
// low is the lowest that its stack pointer can be.
//
// Some code computes where its call will return to, and writes that into the Frame
// with the stack pointer that it has then. It may lower the stack pointer before
// it calls, by stackalloc or for arguments, and unwind codes count from where it
// was at the call. Once back from native code, and before it clears the Frame,
// such code may have called the runtime to wait for the end of a collection.
// Other code, all ReadyToRun code such as Monitor.Wait, lets JIT_PInvokeBegin of
// the runtime fill the Frame. That then holds the return address of this very
// call, and the calls into native code and to the end of it come later.
//
// So what the Frame holds is near, and has to be found on the stack: a call on
// x86-64 leaves the return address right below the stack pointer, and the frame
// record of what was called has it on any CPU.
func (w *Walker) called(to *rescue, low arch.Addr) bool {
	a, mem := w.s.Process.Arch, w.s.Process.Memory
	v, _ := to.regs.Get(a.PC)
	pc, noted, word := arch.Addr(v), to.low, arch.Addr(a.Word)
	if a.LR == arch.NoReg {
		below, have := mem.Word(noted - word)
		near := have && w.near(arch.Addr(below), pc)
		for at, n := noted, 0; have && n < maxSettle && at >= low; at, n = at-word, n+1 {
			w.left--
			v, ok := mem.Word(at - word)
			if !ok {
				break // this word may have been the return address
			}
			if arch.Addr(v) != pc {
				continue
			}
			if near && at < noted {
				break // one of the two is left over from an older call
			}
			to.regs.Set(a.SP, uint64(at))
			to.low = at
			return true
		}
		if near {
			to.regs.Set(a.PC, below)
			return true
		}
	}
	return w.recorded(to, pc)
}

// near reports whether ret lies behind a call that follows the one that pc lies
// behind, in the same method.
func (w *Walker) near(ret, pc arch.Addr) bool {
	return ret >= pc && ret-pc <= maxCallApart && w.s.Process.Arch.AfterCall(w.s.Process.Memory, ret) &&
		w.lookup(ret-1).code.Body == w.lookup(pc-1).code.Body
}

// recorded looks for the frame record of what the method called whose frame
// pointer and, nearly, pc are those of to.
func (w *Walker) recorded(to *rescue, pc arch.Addr) bool {
	a := w.s.Process.Arch
	want, ok1 := to.regs.Get(a.FP)
	fp, ok2 := w.native.Regs().Get(a.FP)
	low := w.native.Low()
	for n := 0; ok1 && ok2 && n < maxHops && arch.Addr(fp) >= low && fp < want; n++ {
		rec, ok := w.record(fp)
		if !ok || rec.exact {
			return false
		}
		next, _ := rec.regs.Get(a.FP)
		if next != want {
			fp, low = next, rec.low
			continue
		}
		v, _ := rec.regs.Get(a.PC)
		if !w.near(arch.Addr(v), pc) {
			return false
		}
		to.regs.Set(a.PC, v)
		labels, known := a.Labels(w.s.Process.Memory, pc, maxCallApart)
		if sp, ok := rec.regs.Get(a.SP); ok {
			to.regs.Set(a.SP, sp)
			to.low = rec.low
		} else if labels || !known {
			to.regs.Forget(a.SP)
			to.low = rec.low
		}
		return true
	}
	return false
}

// maxHops bounds how many frames byFramePointer passes over.
const maxHops = 64

// byFramePointer follows the saved frame pointer of the frame that the walk is
// at, which the runtime's and the JIT's code keep up, and returns the frame it
// leads to. That must be behind a call, in code that somebody knows.
func (w *Walker) byFramePointer() (to rescue, ok bool) {
	a := w.s.Process.Arch
	rule := &a.FramePointer
	fp, ok := w.native.Regs().Get(rule.Base)
	low := uint64(w.native.Low())
	for n := 0; ok && n < maxHops && fp >= low && fp%uint64(a.Word) == 0; n++ {
		if to, ok = w.record(fp); !ok {
			return to, false
		}
		pc, _ := to.regs.Get(a.PC)
		if to.exact {
			return to, true
		}
		if !w.s.code(arch.PC{Addr: arch.Addr(pc)}) || !a.AfterCall(w.s.Process.Memory, arch.Addr(pc)) {
			return to, false
		}
		if w.stays(arch.Addr(pc) - 1) {
			return to, true
		}
		// Its own return address is right even where it is no frame itself:
		// the version that replaced it returns there.
		low = uint64(to.low)
		fp, ok = to.regs.Get(rule.Base)
	}
	return to, false
}

// stays reports whether what looks like a frame in the code at pc is one: a
// method may have been replaced on the stack, and so may code that the runtime
// has made but the dump lacks what would tell about it.
func (w *Walker) stays(pc arch.Addr) bool {
	if l := w.lookup(pc); l.code.Managed() {
		rt, ok := l.rt.(code.Replacing)
		return !ok || !rt.MayBeReplaced(&l.code)
	}
	return w.s.Process.ImageAt(pc) != nil
}

// record reads the frame record at fp: the caller's frame pointer and its return
// address.
func (w *Walker) record(fp uint64) (to rescue, ok bool) {
	a, mem := w.s.Process.Arch, w.s.Process.Memory
	if w.left < 0 {
		return to, false
	}
	rule := &a.FramePointer
	cfa := arch.Addr(fp + uint64(rule.Offset))
	to.low, to.by = cfa, unwind.ByFramePointer
	for _, slot := range rule.Saved[:rule.N] {
		at := cfa + arch.Addr(slot.Off)
		v, ok := mem.Word(at)
		if slot.Reg == a.PC {
			if ret, hijacked := w.hijacked(at); hijacked {
				v, ok = uint64(ret), true
			}
		}
		if !ok {
			return to, false
		}
		to.regs.Set(slot.Reg, v)
	}
	if w.interrupted(cfa, &to) {
		return to, true
	}
	if !rule.NoSP {
		to.regs.Set(a.SP, uint64(cfa))
	}
	pc, _ := to.regs.Get(a.PC)
	to.regs.Set(a.PC, uint64(a.Strip(arch.Addr(pc))))
	return to, true
}

// hijacked returns the return address that is meant at slot, if the runtime has
// put another one there.
func (w *Walker) hijacked(slot arch.Addr) (ret arch.Addr, ok bool) {
	for i := range w.hijacks {
		if w.hijacks[i].Slot == slot {
			return w.hijacks[i].Return, true
		}
	}
	return 0, false
}

// maxSignalFrame bounds how far below the frame record that Linux makes for a
// signal handler the saved registers lie, in bytes: a sigcontext has 4 KiB for
// more registers than the general ones, and what does not fit there lies between.
const maxSignalFrame = 16 << 10

// interrupted finds out whether the frame record that ends at cfa is one that
// Linux has made for a signal handler. The contents of the record are in to; if it
// is such a record, to becomes the frame that the signal has interrupted. The
// record holds the frame pointer and the link register of the interrupted code,
// and the latter may be left over from its last call (setup_sigframe_layout in
// arch/arm64/kernel/signal.c; on x86-64 Linux makes no such record). It is known by
// the registers that Linux has saved below it: these two have the same values.
func (w *Walker) interrupted(cfa arch.Addr, to *rescue) bool {
	a, abi, mem := w.s.Process.Arch, w.s.Process.ABI, w.s.Process.Memory
	if abi.SignalMark == nil {
		return false
	}
	fp, _ := to.regs.Get(a.FP)
	lr, _ := to.regs.Get(a.PC)
	var offFP, offLR arch.Addr
	for _, f := range abi.Signal.Fields {
		switch f.Reg {
		case a.FP:
			offFP = arch.Addr(f.Off)
		case a.LR:
			offLR = arch.Addr(f.Off)
		}
	}
	for at := cfa; at > cfa-maxSignalFrame && at > w.native.Low(); at -= arch.Addr(a.Word) {
		w.left--
		if v, ok := mem.Word(at + offFP); !ok || v != fp {
			continue
		}
		if v, ok := mem.Word(at + offLR); !ok || v != lr {
			continue
		}
		if v, ok := mem.Word(at + arch.Addr(abi.SignalMark.Off)); !ok || uint32(v) != abi.SignalMark.Word {
			continue
		}
		regs := arch.Regs{}
		for _, f := range abi.Signal.Fields {
			if v, ok := mem.Word(at + arch.Addr(f.Off)); ok {
				regs.Set(f.Reg, v)
			}
		}
		_, ok1 := regs.Get(a.PC)
		sp, ok2 := regs.Get(a.SP)
		to.regs, to.low, to.exact = regs, arch.Addr(sp), true
		return ok1 && ok2
	}
	return false
}
