package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A run of native frames is reported only once it is known what comes behind it:
// the runtime does not report the runs on either side of the exception dispatcher.
// Until then the run is held back; flush reports it.
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
	w.aborted = answer != S_OK
}

// abort ends a walk because the callback has answered other than S_OK, or because
// there is no callback.
func (n *Snapshotter) abort() HRESULT {
	if n.callback == nil {
		return E_UNEXPECTED
	}
	// What exactly the callback has answered, the runtime does not hand on.
	n.why = Why{Text: "the callback answered other than S_OK"}
	return CORPROF_E_STACKSNAPSHOT_ABORTED
}

// finish ends a walk that has reached the root. A walk that came to no position at
// all has failed (StackWalkFramesEx begins with E_FAIL for its result).
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
		n.why = Why{} // it is that of another call, made from inside of a callback
	}
	return S_OK
}

// fail ends a walk that the runtime gives up.
func (n *Snapshotter) fail(text string, at arch.Addr) HRESULT { return n.giveUp(E_FAIL, text, at) }

// broken ends a walk at bytes that cannot be right.
func (n *Snapshotter) broken(text string, at arch.Addr) HRESULT {
	return n.giveUp(E_UNEXPECTED, text, at)
}

func (n *Snapshotter) giveUp(hr HRESULT, text string, at arch.Addr) HRESULT {
	if n.flush(); n.walk.aborted {
		return n.abort()
	}
	n.why = Why{Text: text, At: at}
	return hr
}

// fault ends a walk because bytes cannot be read. at is the address of one of them,
// or of the object that they belong to. A native run that is held back is not
// reported: whether the runtime would have reported it depends on what comes behind.
func (n *Snapshotter) fault(text string, at arch.Addr) HRESULT {
	n.why = n.unread(text, at)
	return E_UNEXPECTED
}

// unread says that the bytes at at cannot be read. Either the dump lacks them, or
// the process itself had nothing there: then its own walk would have faulted, which
// the runtime catches on Windows only.
func (n *Snapshotter) unread(text string, at arch.Addr) Why {
	absence, _ := n.s.Process.Memory.Absent(at)
	unmapped := absence == loader.Unmapped && at != 0
	return Why{Text: text, At: at, Missing: !unmapped, Dies: unmapped && !n.system.catchesFaults}
}
