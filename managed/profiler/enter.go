package profiler

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
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

// refuse ends a call before any callback.
func (n *Snapshotter) refuse(row int, hr HRESULT, text string, at arch.Addr, dies bool) (*clr.Thread, HRESULT, bool) {
	n.why = Why{Row: row, Text: text, At: at, Dies: dies}
	return nil, hr, true
}

// undecided ends a call before any callback, as bytes are missing. at is 0 where
// text names them.
func (n *Snapshotter) undecided(row int, text string, at arch.Addr) (*clr.Thread, HRESULT, bool) {
	n.why = n.unread(text, at)
	n.why.Row = row
	return nil, E_UNEXPECTED, true
}

// enter makes the entry checks of DoStackSnapshot in its order
// (src/coreclr/vm/proftoeeinterfaceimpl.cpp), row by row of the table in
// docs/contract.md; what only a live process can have is not among them. It
// leaves the registers to start from in n.walk.
func (n *Snapshotter) enter(req *Request) (t *clr.Thread, hr HRESULT, refused bool) {
	if len(n.byID) == 0 && n.cut == "" {
		return n.refuse(1, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the runtime has not started", 0, false)
	}
	if req.NoStackSnapshot {
		return n.refuse(2, CORPROF_E_INCONSISTENT_WITH_FLAGS, "the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT", 0, false)
	}
	if req.Flags&^COR_PRF_SNAPSHOT_REGISTER_CONTEXT != 0 {
		return n.refuse(4, E_INVALIDARG, "infoFlags has a bit that this CPU does not know", arch.Addr(req.Flags), false)
	}
	if req.Thread == 0 {
		var rt *clr.Runtime
		if t, rt = n.s.Thread(req.TID); t == nil && n.cut != "" {
			return n.undecided(5, n.cut, 0)
		} else if t == nil || rt != n.rt {
			return n.refuse(5, S_OK, "the calling thread has no Thread object: there is nothing to walk", 0, false)
		}
	} else if t = n.byID[req.Thread]; t == nil && n.cut != "" {
		return n.undecided(3, n.cut, 0)
	} else if t == nil {
		return n.refuse(3, E_UNEXPECTED, "no Thread object is there; the runtime does not check", arch.Addr(req.Thread), true)
	}
	if forbids, missing := n.rp.ForbidsSuspension(t); missing != 0 {
		return n.undecided(8, "it cannot be found out whether the thread may be suspended", missing)
	} else if forbids {
		return n.refuse(8, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the thread is in a region that forbids its suspension", 0, false)
	}
	os := n.osThread(t)
	if req.Mode == OSSuspended {
		if !n.system.stopsThreads {
			return n.refuse(9, E_NOTIMPL, "only on Windows can another thread be walked without SuspendRuntime", 0, false)
		}
		if os == nil {
			return n.refuse(9, CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "the thread is dead: it has no handle", 0, true)
		}
	}
	seed := req.Context
	w := &n.walk
	w.begin(n, t, req.Mode)
	if !t.Cooperative {
		seed = nil // row 10: it is not even read
	} else if req.Mode != Self {
		if !n.system.stopsThreads {
			return n.refuse(11, E_NOTIMPL, "the thread is in cooperative mode, and only on Windows can its context be had", 0, false)
		}
		if _, hr, refused := n.enterAsync(req, t, os); refused {
			return nil, hr, true
		}
	}
	if seed != nil {
		if len(seed) < n.ctx.need() {
			return n.refuse(12, E_UNEXPECTED, "the seed is too short for a CONTEXT: the runtime reads what lies behind it", 0, true)
		}
		w.flags = n.ctx.read(seed, &w.regs)
		w.started = true
		copy(n.buf, seed)
		pc := n.pcOf(&w.regs)
		if at := n.unknown(n.lookup(pc)); at != 0 {
			return n.undecided(12, unwindTexts[unwindNoCode], at)
		}
		if !n.lookup(pc).managed() {
			return n.refuse(12, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, "the seed's pc is in no managed code", pc, false)
		}
	} else if w.started { // the OS context of a thread in cooperative mode
		pc := n.pcOf(&w.regs)
		if at := n.unknown(n.lookup(pc)); at != 0 {
			return n.undecided(11, unwindTexts[unwindNoCode], at)
		}
		if !n.lookup(pc).managed() {
			return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, "the thread is in cooperative mode in native code, and no seed is given", pc, false)
		}
	} else if w.missing != 0 {
		return n.undecided(13, w.lack, w.missing)
	} else if some, entered, _ := n.rp.KnowsExceptions(); t.Exception != 0 && (!some || !entered && w.hasTracker && w.tracker.Unwinding) {
		n.why = Why{Row: 13, Text: exceptionLayout, At: t.Exception}
		return nil, E_UNEXPECTED, true
	} else if w.hasTracker && w.tracker.Unwinding && !w.tracker.Entered {
		return n.refuse(13, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, "an exception is unwinding the thread's frames, and none of its handlers runs", w.tracker.Addr, false)
	} else if req.FilterContext != nil && len(req.FilterContext) >= n.ctx.need() {
		w.flags = n.ctx.read(req.FilterContext, &w.regs)
		copy(n.buf, req.FilterContext)
	}
	return t, S_OK, false
}

// enterAsync is row 11: on Windows, a thread in cooperative mode must be where
// its context can be trusted, whether or not a seed is given.
func (n *Snapshotter) enterAsync(req *Request, t *clr.Thread, os *loader.Thread) (*clr.Thread, HRESULT, bool) {
	if req.FilterContext != nil {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "a debugger has set the thread's context", 0, false)
	}
	pc, ok1 := os.Regs.Get(n.a.PC)
	sp, ok2 := os.Regs.Get(n.a.SP)
	if !ok1 || !ok2 {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the dump has no context of the thread", 0, false)
	}
	in := n.rp.AfterSyscall(arch.Addr(pc))
	if req.InSyscall != nil {
		in = *req.InSyscall
	}
	if in {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the thread is in cooperative mode in a system call", arch.Addr(pc), false)
	}
	if t.Frame != clr.EndOfFrames && t.Frame < arch.Addr(sp) {
		return n.refuse(11, CORPROF_E_STACKSNAPSHOT_UNSAFE, "the topmost Frame lies below the stack pointer", t.Frame, false)
	}
	if req.Context == nil {
		w := &n.walk
		for set, r := os.Regs.Known(), arch.Reg(0); r < arch.MaxRegs; r++ {
			if set.Has(r) {
				v, _ := os.Regs.Get(r)
				w.regs.Set(r, v)
			}
		}
		w.flags, w.started = n.ctx.l.Whole, true
	}
	return nil, S_OK, false
}

// osThread returns the dump's thread of a Thread object, or nil.
func (n *Snapshotter) osThread(t *clr.Thread) *loader.Thread {
	tid, ok := n.tids[ThreadID(t.Addr)]
	for i := range n.s.Process.Threads {
		if d := &n.s.Process.Threads[i]; ok && d.ID == tid {
			return d
		}
	}
	return nil
}

// muslBuild reports whether p runs on musl (Alpine Linux), for which the
// runtime is built with NO_FIXED_STACK_LIMIT and does not check a walk against
// the stack's lower bound.
func muslBuild(p *loader.Process) bool {
	for _, img := range p.Images {
		if strings.HasPrefix(img.ID.Name, "ld-musl-") {
			return true
		}
	}
	return false
}
