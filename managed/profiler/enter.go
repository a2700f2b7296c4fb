package profiler

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A Why says what decided the result of a call.
type Why struct {
	Row  int       // of the table of entry checks in docs/contract.md; 0: the walk itself
	Text string    // one clause; "" for S_OK
	At   arch.Addr // what Text is about, or 0
	// Dies: the runtime would not have returned; in the real process this call
	// ends it.
	Dies bool
	// Missing: the dump lacks the byte at At, so that nothing can be said of
	// what the real process would have done from here on.
	Missing bool
}

func (w Why) String() string {
	s := w.Text
	if w.At != 0 {
		s += fmt.Sprintf(" (%v)", w.At)
	}
	if w.Missing {
		s += ", which the dump lacks"
	}
	if w.Dies {
		s += "; the real process dies of it"
	}
	return s
}

// refuse ends a call before any callback, by a row of the table of entry checks.
// Its results, and those of refuseDying and undecided, are what a check returns.
func (n *Snapshotter) refuse(row int, hr HRESULT, text string, at arch.Addr) (HRESULT, bool) {
	n.why = Why{Row: row, Text: text, At: at}
	return hr, true
}

// refuseDying is refuse for a call that ends the real process.
func (n *Snapshotter) refuseDying(row int, hr HRESULT, text string, at arch.Addr) (HRESULT, bool) {
	n.why = Why{Row: row, Text: text, At: at, Dies: true}
	return hr, true
}

// undecided ends a call before any callback because the dump lacks what a check
// needs. at is where that lies, or 0 if text says it.
func (n *Snapshotter) undecided(row int, text string, at arch.Addr) (HRESULT, bool) {
	n.why = n.unread(text, at)
	n.why.Row = row
	return E_UNEXPECTED, true
}

// accept is what a check returns that the call passes.
func accept() (HRESULT, bool) { return S_OK, false }

// enter makes the entry checks of DoStackSnapshot in its order
// (src/coreclr/vm/proftoeeinterfaceimpl.cpp), row by row of the table in
// docs/contract.md. Checks of what only a live process can have are not among them.
// It leaves the registers that the walk starts from in n.walk.
func (n *Snapshotter) enter(req *Request) (t *code.Thread, hr HRESULT, refused bool) {
	if hr, refused = n.checkCall(req); refused {
		return nil, hr, true
	}
	if t, hr, refused = n.target(req); refused {
		return nil, hr, true
	}
	os := n.osThread(t)
	if hr, refused = n.checkTarget(req, t, os); refused {
		return nil, hr, true
	}
	n.walk.begin(n, t, req.Mode)
	seed := req.Context
	if !t.Cooperative {
		seed = nil // row 10: it is not even read
	} else if req.Mode != Self {
		if hr, refused = n.enterAsync(req, t, os); refused {
			return nil, hr, true
		}
	}
	switch {
	case seed != nil:
		hr, refused = n.startAtSeed(seed)
	case n.walk.started: // at the OS context of a thread in cooperative mode
		hr, refused = n.startsManaged(11, "the thread is in cooperative mode in native code, and no seed is given")
	default:
		hr, refused = n.startAtFrames(req, t)
	}
	return t, hr, refused
}

// checkCall is rows 1, 2 and 4: what does not depend on the target.
func (n *Snapshotter) checkCall(req *Request) (hr HRESULT, refused bool) {
	switch {
	case len(n.byID) == 0 && n.cut == "":
		return n.refuse(1, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the runtime has not started", 0)
	case req.NoStackSnapshot:
		return n.refuse(2, CORPROF_E_INCONSISTENT_WITH_FLAGS, "the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT", 0)
	case req.Flags&^COR_PRF_SNAPSHOT_REGISTER_CONTEXT != 0:
		return n.refuse(4, E_INVALIDARG, "infoFlags has a bit that this CPU does not know", arch.Addr(req.Flags))
	}
	return accept()
}

// target is rows 3 and 5: which thread the call is about.
func (n *Snapshotter) target(req *Request) (t *code.Thread, hr HRESULT, refused bool) {
	if req.Thread != 0 {
		switch t = n.byID[req.Thread]; {
		case t != nil:
			return t, S_OK, false
		case n.cut != "":
			hr, refused = n.undecided(3, n.cut, 0)
		default:
			hr, refused = n.refuseDying(3, E_UNEXPECTED, "no Thread object is there; the runtime does not check", arch.Addr(req.Thread))
		}
		return nil, hr, refused
	}
	switch t, rt := n.s.Thread(req.TID); {
	case t == nil && n.cut != "":
		hr, refused = n.undecided(5, n.cut, 0)
	case t == nil || rt != n.rt:
		hr, refused = n.refuse(5, S_OK, "the calling thread has no Thread object: there is nothing to walk", 0)
	default:
		return t, S_OK, false
	}
	return nil, hr, refused
}

// checkTarget is rows 8 and 9: whether t may be walked at all, and by another
// thread. os is the dump's thread of t, nil if it has none.
func (n *Snapshotter) checkTarget(req *Request, t *code.Thread, os *loader.Thread) (hr HRESULT, refused bool) {
	forbids, missing := n.rp.ForbidsSuspension(t)
	switch {
	case missing != 0:
		return n.undecided(8, "it cannot be found out whether the thread may be suspended", missing)
	case forbids:
		return n.refuse(8, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the thread is in a region that forbids its suspension", 0)
	case req.Mode != OSSuspended:
		return accept()
	case !n.system.stopsThreads:
		return n.refuse(9, E_NOTIMPL, "only on Windows can another thread be walked without SuspendRuntime", 0)
	case os == nil:
		return n.refuseDying(9, CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "the thread is dead: it has no handle", 0)
	}
	return accept()
}

// enterAsync is row 11: another thread walks t, which is in cooperative mode. That
// is so on Windows only, and t must be where its context can be trusted, whether a
// seed is given or not.
func (n *Snapshotter) enterAsync(req *Request, t *code.Thread, os *loader.Thread) (hr HRESULT, refused bool) {
	if !n.system.stopsThreads {
		return n.refuse(11, E_NOTIMPL, "the thread is in cooperative mode, and only on Windows can its context be had", 0)
	}
	if req.FilterContext != nil {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "a debugger has set the thread's context", 0)
	}
	var regs arch.Regs
	if os != nil {
		regs = os.Regs
	}
	pc, ok1 := regs.Get(n.a.PC)
	sp, ok2 := regs.Get(n.a.SP)
	if !ok1 || !ok2 {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the dump has no context of the thread", 0)
	}
	in := n.rp.AfterSyscall(arch.Addr(pc))
	if req.InSyscall != nil {
		in = *req.InSyscall
	}
	if in {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the thread is in cooperative mode in a system call", arch.Addr(pc))
	}
	if t.Frame != code.EndOfFrames && t.Frame < arch.Addr(sp) {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the topmost Frame lies below the stack pointer", t.Frame)
	}
	if req.Context == nil {
		w := &n.walk
		for known, r := regs.Known(), arch.Reg(0); r < arch.MaxRegs; r++ {
			if known.Has(r) {
				v, _ := regs.Get(r)
				w.regs.Set(r, v)
			}
		}
		w.flags, w.started = n.ctx.l.Whole, true
	}
	return accept()
}

// startAtSeed is row 12: the walk starts at the seed's registers.
func (n *Snapshotter) startAtSeed(seed []byte) (hr HRESULT, refused bool) {
	if len(seed) < n.ctx.need() {
		return n.refuseDying(12, E_UNEXPECTED, "the seed is too short for a CONTEXT: the runtime reads what lies behind it", 0)
	}
	w := &n.walk
	w.flags = n.ctx.read(seed, w.regs)
	w.started = true
	copy(n.buf, seed)
	return n.startsManaged(12, "the seed's pc is in no managed code")
}

// startsManaged checks that the pc which the walk starts from is in managed code;
// text says that it is not.
func (n *Snapshotter) startsManaged(row int, text string) (hr HRESULT, refused bool) {
	pc := n.pcOf(n.walk.regs)
	c := n.lookup(pc)
	if at := n.unknown(c); at != 0 {
		return n.undecided(row, unwindTexts[unwindNoCode], at)
	}
	if !c.managed() {
		return n.refuse(row, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, text, pc)
	}
	return accept()
}

// startAtFrames is row 13: the walk starts with the explicit Frames of t, or with
// the context that a debugger has set. An exception must not be unwinding the frames
// that it would report.
func (n *Snapshotter) startAtFrames(req *Request, t *code.Thread) (hr HRESULT, refused bool) {
	w := &n.walk
	if w.missing != 0 {
		return n.undecided(13, w.lack, w.missing)
	}
	unwinding := w.hasTracker && w.tracker.Unwinding
	if known, entered, _ := n.rp.KnowsExceptions(); t.Exception != 0 && (!known || !entered && unwinding) {
		return n.refuse(13, E_UNEXPECTED, exceptionLayout, t.Exception)
	}
	if unwinding && !w.tracker.Entered {
		return n.refuse(13, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, "an exception is unwinding the thread's frames, and none of its handlers runs", w.tracker.Addr)
	}
	if len(req.FilterContext) >= n.ctx.need() {
		w.flags = n.ctx.read(req.FilterContext, w.regs)
		copy(n.buf, req.FilterContext)
	}
	return accept()
}

// osThread returns the dump's thread of a Thread object, or nil.
func (n *Snapshotter) osThread(t *code.Thread) *loader.Thread {
	tid, ok := n.tids[ThreadID(t.Addr)]
	for i := range n.s.Process.Threads {
		if d := &n.s.Process.Threads[i]; ok && d.ID == tid {
			return d
		}
	}
	return nil
}
