package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
)

// maxHelperFrames bounds the native frames between a helper of the runtime and
// its managed caller: there are one or two.
const maxHelperFrames = 64

// updateRegs sets in out what f restores, and returns the pc that f leads to, 0
// if it leads nowhere. If the dump lacks what the runtime would have read for
// this, missing is its address. The Frame of a helper may have captured only where
// its function was: the runtime then leaves native frames from there, now and once
// (LazyMachState::unwindLazyState of src/coreclr/vm/amd64/gmsamd64.cpp, .NET 8 and 9).
func (n *Snapshotter) updateRegs(f clr.Frame, out *arch.Regs) (pc, missing arch.Addr) {
	lazy, missing := n.rp.Lazy(f, &n.lazy)
	switch {
	case missing != 0:
		return 0, missing
	case !lazy:
		return n.rp.UpdateRegs(f, out)
	}
	if missing = n.leaveHelper(); missing != 0 {
		return 0, missing
	}
	regs, set := n.walker.Regs(), n.rp.Saved()|arch.Regset(n.a.PC, n.a.SP)
	for r := arch.Reg(0); r < arch.MaxRegs; r++ {
		if !set.Has(r) {
			continue
		}
		v, ok := regs.Get(r)
		if !ok {
			return 0, max(n.walker.Hole(r), 1)
		}
		out.Set(r, v)
	}
	return n.pcOf(regs), 0
}

// leaveHelper leaves native frames from where n.lazy says, as many as it says or up
// to managed code, where n.walker then is. missing is the address of what the dump
// lacks for it, or of the code that cannot be left, or 0.
func (n *Snapshotter) leaveHelper() (missing arch.Addr) {
	w, t := n.seedWalker(), n.osThread(n.walk.thread)
	if t == nil {
		t = &n.noThread
	}
	w.Start(t) // whose return addresses may be hijacked
	if !w.Resume(&n.lazy.Regs) {
		return n.pcOf(&n.lazy.Regs)
	}
	left := n.lazy.Depth
	for range maxHelperFrames {
		if !w.Leave() {
			if at := w.Stop().At; at != 0 {
				return at
			}
			break
		}
		if left > 0 {
			if left--; left == 0 {
				return 0
			}
			continue
		}
		c := n.lookup(n.pcOf(w.Regs())) // the exact pc, as the runtime does
		if at := n.unknown(c); at != 0 {
			return at
		}
		if c.managed() {
			return 0
		}
	}
	return n.pcOf(&n.lazy.Regs)
}
