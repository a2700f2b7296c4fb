package profiler

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// A Verdict is what becomes of a seed that somebody else computed.
type Verdict struct {
	HR      HRESULT // of a walk that is given the seed
	Why     Why
	Calls   int  // callbacks of that walk
	Managed bool // its pc is in managed code, all that the runtime checks
	Unknown bool // the dump lacks what says whether it is
	Ignored bool // the runtime would not look at it
	Same    bool // it is the seed that FindSeed finds
	Differs []string
	Text    string // in which way it differs
}

// CheckSeed walks t with the seed ctx, a CONTEXT, and compares it with the one
// that FindSeed found. S_OK does not prove a seed right: the runtime checks its
// pc only. An error says that there is nothing to check or to compare with.
func (n *Snapshotter) CheckSeed(t *loader.Thread, found *SeedSearch, mode Mode, ctx []byte) (v Verdict, err error) {
	if t == nil || found == nil {
		return v, errors.New("a seed is checked for a thread of the dump, and against what FindSeed has found of that thread")
	}
	if lost := n.guardRetry(func() { v, err = n.checkSeed(t, found, mode, ctx) }); lost != nil {
		n.lost(lost)
		return v, lost
	}
	return v, err
}

func (n *Snapshotter) checkSeed(t *loader.Thread, found *SeedSearch, mode Mode, ctx []byte) (Verdict, error) {
	if len(ctx) < n.ctx.need() {
		return Verdict{}, fmt.Errorf("a CONTEXT of %d bytes is too short: its registers alone need %d", len(ctx), n.ctx.need())
	}
	var v Verdict
	v.HR = n.Do(Request{TID: t.ID, Thread: n.threadID(t, mode), Mode: mode, Context: ctx}, func(Call) HRESULT { v.Calls++; return S_OK })
	v.Why = n.why
	var regs arch.Regs
	n.ctx.read(ctx, &regs)
	in := n.lookup(n.pcOf(&regs))
	v.Managed, v.Unknown = in.managed(), n.unknown(in) != 0
	v.Ignored = found.NeedKnown && !found.Needed
	if found.Seed == nil && !found.Stop.Reason.Complete() {
		v.Text = "the thread's topmost managed frame was not found"
		return v, nil
	}
	if found.Seed == nil {
		v.Text = "this thread has no managed frame: no seed is right"
		return v, nil
	}
	keep := n.s.Process.ABI.CalleeSaved | arch.Regset(n.a.PC, n.a.SP)
	for r := arch.Reg(0); r < arch.MaxRegs; r++ {
		want, known := found.Seed.Regs.Get(r)
		if got, _ := regs.Get(r); known && keep.Has(r) && got != want {
			v.Differs = append(v.Differs, n.a.RegName(r))
		}
	}
	v.Same = len(v.Differs) == 0
	v.Text = n.judge(t, found, &regs, &v)
	return v, nil
}

// threadID is what a profiler passes for t: itself by 0.
func (n *Snapshotter) threadID(t *loader.Thread, mode Mode) ThreadID {
	if m, rt := n.s.Thread(t.ID); mode != Self && m != nil && rt == n.rt {
		return ThreadID(m.Addr)
	}
	return 0
}

// judge says in one clause what is wrong with a seed.
func (n *Snapshotter) judge(t *loader.Thread, found *SeedSearch, regs *arch.Regs, v *Verdict) string {
	pc, sp := n.pcOf(regs), n.spOf(regs)
	right := found.Seed
	switch {
	case v.Same:
		return "it is the right seed"
	case v.Unknown:
		return fmt.Sprintf("the dump lacks what tells whether its pc %v is in managed code", pc)
	case !v.Managed:
		if img := n.s.Process.ImageAt(pc); img != nil {
			return fmt.Sprintf("its pc %v is native code of %s", pc, img.ID.Name)
		}
		return fmt.Sprintf("its pc %v is in no code", pc)
	case pc == right.PC && sp == right.SP:
		return "it is the right frame; these registers differ: " + strings.Join(v.Differs, ", ")
	}
	if owner := n.stackOf(sp); owner != 0 && owner != t.ID {
		return fmt.Sprintf("its stack pointer %v lies on the stack of thread %d: it is another thread's seed", sp, owner)
	}
	if m, _ := n.s.Thread(t.ID); m != nil && m.StackBase != 0 && (sp < m.StackLimit || sp >= m.StackBase) {
		return fmt.Sprintf("its stack pointer %v is outside of the thread's stack, %v to %v", sp, m.StackLimit, m.StackBase)
	}
	if depth, at, ok := n.frameWith(t, pc, sp); ok {
		if depth > 0 {
			return fmt.Sprintf("it is %s deeper than the topmost managed frame: what lies above it will be lost", plural(depth, "managed frame"))
		}
		return fmt.Sprintf("it is a frame of the thread, with another stack pointer: off by %+d", int64(sp-at))
	}
	if now, ok := t.Regs.Get(n.a.SP); ok && sp < arch.Addr(now) {
		return fmt.Sprintf("it is stale: its stack pointer %v lies below the thread's %v, the frame has returned", sp, arch.Addr(now))
	}
	return "it is stale: the thread has no frame with this pc and stack pointer any more"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stackOf returns the TID of the managed thread on whose stack sp lies, or 0.
func (n *Snapshotter) stackOf(sp arch.Addr) uint32 {
	for id, m := range n.byID {
		if m.StackBase != 0 && sp >= m.StackLimit && sp < m.StackBase {
			return n.tids[id]
		}
	}
	return 0
}

// frameWith looks for a managed frame of t with this pc: how many managed
// frames lie above it if its stack pointer is sp too, else 0 and where it is.
func (n *Snapshotter) frameWith(t *loader.Thread, pc, sp arch.Addr) (depth int, at arch.Addr, ok bool) {
	n.frames, _ = n.seedWalker().Walk(n.frames[:0], t)
	above, near := 0, ^arch.Addr(0)
	for i := range n.frames {
		f := &n.frames[i]
		if f.Kind != managed.Managed {
			continue
		}
		if f.PC.Addr == pc {
			if f.SP == sp {
				return above, sp, true
			}
			// Of several frames with this pc the nearest is meant.
			if d := max(f.SP, sp) - min(f.SP, sp); d < near && d <= nearby {
				near, at, ok = d, f.SP, true
			}
		}
		above++
	}
	return 0, at, ok
}

// nearby is how far off a stack pointer may be for the frame to be recognized.
const nearby = 256
