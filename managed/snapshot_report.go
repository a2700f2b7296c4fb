package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// A snapshotCode is what a walk asks of the code at a pc, remembered. Unlike a
// physical walk, the runtime's looks up the exact pc, also of a return address.
type snapshotCode struct {
	pc         arch.Addr
	code       clr.Code
	rule       arch.Rule
	outcome    unwind.Outcome
	why        unwind.Stop
	visibility clr.Visibility
	dispatcher bool
	missing    arch.Addr // what the dump lacks of the answer
	orphan     bool      // each frame is left as its registers say
}

func (c *snapshotCode) managed() bool { return c.code.Managed() }

// unsure reports whether c may be managed code for all that the dump has. In
// ELF images there is none, nor at the null that a walk without a seed begins with.
func (n *Snapshotter) unsure(c *snapshotCode) bool {
	if c.managed() || c.pc == 0 || !n.lacks(c.missing) {
		return false
	}
	img := n.s.Process.ImageAt(c.pc)
	return img == nil || img.Format != "elf"
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
	if c.code, c.missing = n.rt.Lookup(pc); !c.managed() {
		return c
	}
	n.rule(c)
	c.visibility = n.rp.Visibility(&c.code)
	c.dispatcher = c.visibility == clr.Visible && n.dispatches(c.code.Method)
	return c
}

// rule finds how the frame at c.pc is left.
func (n *Snapshotter) rule(c *snapshotCode) {
	n.step = unwind.Step{PC: arch.PC{Addr: c.pc, Exact: true}, Mem: n.mem, Arch: n.a}
	c.outcome = n.rt.Source().Unwind(&n.step)
	if c.why = n.step.Why; c.outcome == unwind.Broken && c.why.Reason == unwind.InfoMissing {
		// Without the code an epilogue cannot be told from a body. Behind a
		// call, where nearly all frames are, there is no epilogue.
		if c.code.Body.Has(c.pc - 1) {
			n.step.PC.Exact = false
			c.outcome = n.rt.Source().Unwind(&n.step)
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
	if c.code.Kind == clr.JIT {
		n.rt.Complete(&c.code)
	}
	// Only a return address can be told from one in a prologue or an epilogue.
	c.orphan = c.code.Method != 0 && n.a.AfterCall(n.mem, c.pc)
}

// dispatches reports whether md is a method of the exception dispatcher, of
// which the names of each class tell once.
func (n *Snapshotter) dispatches(md arch.Addr) bool {
	mt, ok := n.rp.MethodTable(md)
	if !ok {
		return false
	}
	is, known := n.eh[mt]
	if !known {
		is = n.rp.Dispatcher(md)
		n.eh[mt] = is
	}
	return is
}

// How unwinding a managed frame ended.
type unwindResult uint8

const (
	unwound unwindResult = iota
	unwindNoInfo
	unwindNoWord
	unwindNoMethod
	unwindNoFrame
)

var unwindTexts = [...]string{
	unwindNoInfo:   "a managed method's unwind information cannot be read",
	unwindNoWord:   "a word of the stack cannot be read",
	unwindNoMethod: "it cannot be found out which method a frame is of",
	unwindNoFrame:  "what an explicit Frame has saved cannot be read",
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
	base, _ := regs.Get(r.Base)
	cfa := arch.Addr(base) + arch.Addr(int64(r.Offset))
	if c.code.Method == 0 {
		return c.missing, unwindNoMethod
	}
	*out = *regs
	out.Set(n.a.SP, uint64(cfa))
	for i := range r.Saved[:r.N] {
		s := &r.Saved[i]
		at := cfa + arch.Addr(int64(s.Off))
		v, ok := n.mem.Word(at)
		if !ok {
			return at, unwindNoWord
		}
		// Before it walks, the runtime puts back a return address that it has
		// hijacked.
		if t := n.walk.thread; at == t.HijackSlot && at != 0 {
			v = uint64(t.HijackReturn)
		}
		out.Set(s.Reg, v)
	}
	if r.RA != arch.NoReg {
		v, _ := out.Get(r.RA)
		out.Set(n.a.PC, v)
	}
	pc := n.pcOf(out)
	if r.Signed {
		pc = n.a.Strip(pc)
		out.Set(n.a.PC, uint64(pc))
	}
	if n.a.LR != arch.NoReg {
		out.Set(n.a.LR, uint64(pc)) // so unwinding leaves it
	}
	return 0, unwound
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
		n.why = Why{Text: "the callback is null; the runtime does not check", Dies: !n.windows}
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

// undecided is fault for code of which the dump does not tell what it is. Were it
// the exception dispatcher's, the native run before it would not be reported.
func (n *Snapshotter) undecided(text string, at arch.Addr) HRESULT {
	n.walk.held = false
	return n.fault(text, at)
}

// fault ends a walk at bytes that cannot be read. If the process itself could
// not have read them, its own walk would have faulted, which Windows catches
// and Linux does not.
func (n *Snapshotter) fault(text string, at arch.Addr) HRESULT {
	if n.flush(); n.walk.aborted {
		return n.abort()
	}
	n.why = Why{Text: text, At: at, Missing: n.lacks(at)}
	if absence, _ := n.s.Process.Memory.Absent(at); absence == loader.Unmapped {
		n.why.Dies = !n.windows
	}
	return E_UNEXPECTED
}
