package profiler

import (
	"errors"
	"math/bits"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A snapshotCode is what a walk asks of the code at a pc, remembered. Unlike a
// physical walk, the runtime's looks up the exact pc, also of a return address.
type snapshotCode struct {
	pc arch.Addr
	shownCode
	rule    arch.Rule
	outcome unwind.Outcome
	why     unwind.Stop
	missing arch.Addr // what the dump lacks to say what lies here
	orphan  bool      // each frame is left as its registers say
	// behindCall: the rule holds behind a call only. The code is missing, and
	// without it an epilogue cannot be told from a body.
	behindCall bool
}

// A shownCode is what decides whether a profiler is shown a frame.
type shownCode struct {
	code       clr.Code
	visibility clr.Visibility
	dispatcher bool
	// hidden is what the dump lacks to say whether the frame is reported,
	// dispatching to say whether it is one of the exception dispatcher.
	hidden, dispatching arch.Addr
}

func (c *snapshotCode) managed() bool { return c.code.Managed() }

// unknown returns what the dump lacks to say whether c is managed code, or 0. In
// ELF images there is none, nor at the null that a walk without a seed begins with.
func (n *Snapshotter) unknown(c *snapshotCode) arch.Addr {
	if c.managed() || c.code.Kind == code.Stub || c.missing == 0 {
		return 0
	}
	if img := n.s.Process.ImageAt(c.pc); img != nil && img.Format == "elf" {
		return 0
	}
	return c.missing
}

// The cache has room for the return addresses of a whole process: a server has
// some hundred. A pc has its place in one of a few neighbouring slots.
const (
	snapshotCache = 1 << 10
	snapshotWays  = 4
)

// lookup says what lies at pc. The answer is good until the next look-up.
func (n *Snapshotter) lookup(pc arch.Addr) *snapshotCode {
	h := uint64(pc) * 0x9e3779b97f4a7c15 >> 32
	c := &n.cache[h%snapshotCache]
	for i := range uint64(snapshotWays) {
		e := &n.cache[(h+i)%snapshotCache]
		if e.pc == pc && pc != 0 {
			return e
		}
		if e.pc == 0 {
			c = e
			break
		}
	}
	*c = snapshotCode{pc: pc}
	if pc == 0 {
		return c // of a walk that has nothing to start from
	}
	if c.code, c.missing = n.rt.CodeAt(pc); !c.managed() {
		return c
	}
	n.rule(c)
	if c.hidden = c.missing; c.code.Method != 0 {
		c.visibility, c.hidden = n.rp.Visibility(&c.code)
		if c.visibility == clr.Visible {
			c.dispatcher, c.dispatching = n.dispatches(c.code.Method)
		}
	}
	return c
}

// rule finds how the frame at c.pc is left.
func (n *Snapshotter) rule(c *snapshotCode) {
	n.step = unwind.Step{PC: arch.PC{Addr: c.pc, Exact: true}, Mem: n.mem, Arch: n.a}
	c.outcome = n.rt.Source().Unwind(&n.step)
	if c.why = n.step.Why; c.outcome == unwind.Broken && c.why.Reason == unwind.InfoMissing {
		// Behind a call, where nearly all frames are, there is no epilogue.
		if c.code.Body.Has(c.pc - 1) {
			n.step.PC.Exact = false
			c.outcome, c.behindCall = n.rt.Source().Unwind(&n.step), true
		}
	}
	if c.outcome == unwind.UseRule {
		c.rule = n.step.Rule
	} else if c.outcome == unwind.Broken && c.why.Reason == unwind.InfoMissing {
		n.orphan(c)
	}
}

// orphan prepares to do without the header of c's method, which the dump lacks.
func (n *Snapshotter) orphan(c *snapshotCode) {
	if c.code.Kind == code.JIT {
		n.rt.CompleteCode(&c.code)
	}
	// Only a return address can be told from one in a prologue or an epilogue.
	c.orphan = c.code.Method != 0 && !c.code.Funclet && n.a.AfterCall(n.mem, c.pc)
}

// dispatches reports whether md is a method of the exception dispatcher, of
// which the names of each class tell once; missing is what the dump lacks to tell.
func (n *Snapshotter) dispatches(md arch.Addr) (is bool, missing arch.Addr) {
	mt, missing := n.rp.MethodTable(md)
	if missing != 0 {
		return false, missing
	}
	d, known := n.eh[mt]
	if !known {
		var err error
		if d.is, err = n.rp.Dispatcher(mt); err != nil {
			d.missing = mt
			if lack := (*ecma.Error)(nil); errors.As(err, &lack) {
				d.missing = lack.At
			}
		}
		n.eh[mt] = d
	}
	return d.is, d.missing
}

// A dispatcherClass says whether a class is one of the exception dispatcher, or
// what the dump lacks to say so.
type dispatcherClass struct {
	is      bool
	missing arch.Addr
}

// How unwinding a managed frame ended.
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

// unwind finds the registers of c's caller.
func (n *Snapshotter) unwind(c *snapshotCode, regs, out *arch.Regs) (at arch.Addr, how unwindResult) {
	r := &c.rule
	if c.outcome != unwind.UseRule {
		// What becomes of a funclet's parent depends on its being a funclet.
		if !c.orphan {
			return c.why.At, unwindNoInfo
		}
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
	for i := range r.Saved[:r.N] {
		out.Set(r.Saved[i].Reg, to.Vals[i])
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

// flush reports the native run that was held back.
func (n *Snapshotter) flush() {
	if w := &n.walk; w.held && !w.aborted {
		w.held = false
		n.report(0, &w.heldRegs, w.heldFlags)
	}
}

// report calls the profiler's callback.
func (n *Snapshotter) report(fn FunctionID, regs *arch.Regs, flags uint32) {
	w := &n.walk
	if n.callback == nil {
		w.aborted = true
		n.why = Why{Text: "the callback is null; the runtime does not check", Dies: !n.system.catchesFaults}
		return
	}
	c := Call{Function: fn, IP: n.pcOf(regs), ClientData: n.req.ClientData, owner: n}
	if n.req.Flags&COR_PRF_SNAPSHOT_REGISTER_CONTEXT != 0 {
		c.ContextSize = uint32(n.ctx.l.Size)
		n.ctx.write(n.buf, regs, flags)
	}
	n.gen++
	c.gen, n.shown = n.gen, regs
	answer := n.callback(c)
	n.gen++
	w.calls++
	w.aborted = answer != S_OK
}

// abort ends a walk that the callback does not want to go on, or that has none.
func (n *Snapshotter) abort() HRESULT {
	if n.callback == nil {
		return E_UNEXPECTED
	}
	// The callback's own code is lost.
	n.why = Why{Text: "the callback answered other than S_OK"}
	return CORPROF_E_STACKSNAPSHOT_ABORTED
}

// finish ends a walk that has reached the root. Without a single position it
// counts as failed (StackWalkFramesEx starts from that).
func (n *Snapshotter) finish() HRESULT {
	w := &n.walk
	if n.flush(); w.aborted {
		return n.abort()
	}
	if w.stops == 0 && w.unsure != 0 {
		return n.fault("it cannot be found out whether an explicit Frame has a method", w.unsure)
	}
	if w.stops == 0 {
		n.why.Text, n.why.At = "the walk found no managed frame, and no explicit Frame of a method", 0
		return E_FAIL
	}
	if n.why.Row != 0 {
		n.why = Why{} // of a call from inside of a callback
	}
	return S_OK
}

// fail ends a walk that the runtime gives up.
func (n *Snapshotter) fail(text string, at arch.Addr) HRESULT {
	if n.flush(); n.walk.aborted {
		return n.abort()
	}
	n.why = Why{Text: text, At: at}
	return E_FAIL
}

// fault ends a walk at bytes that cannot be read. at may be where the object
// begins that one of them belongs to.
func (n *Snapshotter) fault(text string, at arch.Addr) HRESULT {
	// A native run that is held back is not reported: whether it would have
	// been depends on what comes next.
	n.why = n.unread(text, at)
	return E_UNEXPECTED
}

// broken ends a walk at bytes that cannot be right.
func (n *Snapshotter) broken(text string, at arch.Addr) HRESULT {
	if n.flush(); n.walk.aborted {
		return n.abort()
	}
	n.why = Why{Text: text, At: at}
	return E_UNEXPECTED
}

// unread says that bytes cannot be read. If the process itself could not have
// read them, its own walk would have faulted, which Windows catches and Linux
// does not.
func (n *Snapshotter) unread(text string, at arch.Addr) Why {
	absence, _ := n.s.Process.Memory.Absent(at)
	unmapped := absence == loader.Unmapped && at != 0
	return Why{Text: text, At: at, Missing: !unmapped, Dies: unmapped && !n.system.catchesFaults}
}
