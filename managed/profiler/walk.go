package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A snapshotWalk is the state of one replayed walk: the runtime's
// StackFrameIterator over explicit Frames and managed code
// (src/coreclr/vm/stackwalk.cpp), and what StackWalkFrames makes of it.
type snapshotWalk struct {
	thread *code.Thread
	mode   Mode
	regs   *arch.Regs   // of the position the walk is at
	caller *arch.Regs   // of the caller of the managed frame that the walk is at
	room   [2]arch.Regs // for these two, which change places

	callerManaged bool
	callerUnknown arch.Addr // what the dump lacks to say whether the caller is managed
	flags         uint32    // ContextFlags, handed on from the seed or from a Frame that holds a CONTEXT
	// started: regs are those of a seed, or of the thread's OS context. Otherwise
	// the walk begins with the explicit Frames.
	started bool
	exact   bool // the frame with regs was interrupted, or may have been

	frames  frameChain // at the current explicit Frame
	inlined arch.Addr  // the last InlinedCallFrame that was followed

	skip   skip
	skipTo arch.Addr // of skipToParent
	stops  int       // positions that the iterator has handed out, reported or not

	tracker    clr.ExInfo // the newest exception
	hasTracker bool
	missing    arch.Addr // what the dump lacks for the walk to go on, or 0
	lack       string    // what for, in a clause
	unsure     arch.Addr // what the dump lacks to say whether a Frame that was passed has a method

	held         bool      // a native run waits for what comes behind it
	heldRegs     arch.Regs // the registers of its youngest frame
	heldFlags    uint32
	inDispatcher bool // the last managed frame was one of the exception dispatcher
	aborted      bool // the callback does not want to go on, or there is none
}

// A skip says up to where managed frames are hidden.
type skip uint8

const (
	skipNone     skip = iota
	skipOne           // the funclet that is being visited
	skipToParent      // up to the frame whose caller's SP is skipTo
)

// maxSnapshotSteps bounds a walk, whose code and Frames somebody may have forged. The
// runtime has no such bound: it has made both itself.
const maxSnapshotSteps = 1 << 20

const (
	brokenChain = "the chain of explicit Frames is broken"
	noException = "the state of the thread's exception cannot be read"

	exceptionLayout = "it is not known of this version of the runtime where it keeps the state of an exception"
)

// maxTrackers bounds the exceptions nested on one thread.
const maxTrackers = 1 << 12

// begin prepares a walk of t.
func (w *snapshotWalk) begin(n *Snapshotter, t *code.Thread, mode Mode) {
	*w = snapshotWalk{thread: t, mode: mode}
	w.regs, w.caller = &w.room[0], &w.room[1]
	*w.regs = n.zero
	clear(n.buf)
	if t.Exception == 0 {
		return
	}
	w.lack = noException
	if w.tracker, w.missing, w.hasTracker = n.rp.ExInfoAt(t.Exception, t); !w.hasTracker && w.missing == 0 {
		n.why = Why{Text: "the state of the thread's exception is half written, or not known of this version: it counts as none", At: t.Exception}
	}
}

func (n *Snapshotter) pcOf(regs *arch.Regs) arch.Addr {
	v, _ := regs.Get(n.a.PC)
	return arch.Addr(v)
}

func (n *Snapshotter) spOf(regs *arch.Regs) arch.Addr {
	v, _ := regs.Get(n.a.SP)
	return arch.Addr(v)
}

// run walks the thread that enter has let through.
func (n *Snapshotter) run(t *code.Thread) HRESULT {
	w := &n.walk
	if w.missing != 0 {
		return n.fault(w.lack, w.missing)
	}
	if some, _, _ := n.rp.KnowsExceptions(); !some && t.Exception != 0 {
		return n.broken(exceptionLayout, t.Exception)
	}
	if t.HijackLost != 0 {
		return n.fault("the return address that the runtime has replaced cannot be read", t.HijackLost)
	}
	w.exact = w.started
	w.frames.begin(n.rp, t.Frame)
	if hr, over := n.chainEnd(); over {
		return hr
	}
	for step := 0; ; step++ {
		if step == maxSnapshotSteps {
			return n.fail("the walk goes round in circles", n.pcOf(w.regs))
		}
		c := n.lookup(n.pcOf(w.regs))
		if c.managed() {
			if hr, over := n.managedFrame(c); over {
				return hr
			}
			continue
		}
		if at := n.unknown(c); at != 0 {
			return n.fault(unwindTexts[unwindNoCode], at)
		}
		if w.frames.end {
			return n.finish()
		}
		if hr, over := n.explicitFrame(); over {
			return hr
		}
	}
}

// managedFrame visits the managed frame that the walk is at, and goes on to its
// caller.
func (n *Snapshotter) managedFrame(c *snapshotCode) (hr HRESULT, over bool) {
	w := &n.walk
	at, how := n.unwind(c, w.regs, w.caller)
	if how == unwindNoInfo && c.why.Reason == unwind.BadInfo {
		return n.broken(unwindTexts[how], at), true
	} else if how != unwound {
		return n.fault(unwindTexts[how], at), true
	}
	// c lies in a cache: it is gone after the next look-up.
	shown := c.shownCode
	caller := n.lookup(n.pcOf(w.caller))
	w.callerManaged, w.callerUnknown = caller.managed(), n.unknown(caller)
	callerSP := n.spOf(w.caller)
	// Frames inside of this frame belong to calls that the walk is past.
	for !w.frames.end && w.frames.frame.Addr < callerSP {
		w.frames.next(n.rp)
	}
	if hr, over := n.chainEnd(); over {
		return hr, true
	}
	if n.visit(&shown, callerSP); w.missing != 0 {
		return n.fault(w.lack, w.missing), true
	}
	if w.aborted {
		return n.abort(), true
	}
	if w.callerUnknown != 0 {
		return n.fault(unwindTexts[unwindNoCode], w.callerUnknown), true
	}
	w.regs, w.caller, w.exact = w.caller, w.regs, false
	w.flags |= n.ctx.l.Unwound
	if t := w.thread; t.StackBase != 0 && (callerSP >= t.StackBase || callerSP < t.StackLimit && !n.noBound) {
		return n.fail("the stack pointer of the caller lies outside of the stack", callerSP), true
	}
	if w.callerManaged || w.skip != skipNone {
		return 0, false
	}
	// A run of native frames begins. It is reported by the registers of its
	// youngest, as they are when the managed callee returns.
	w.stops++
	n.flush()
	if !w.inDispatcher {
		w.held, w.heldRegs, w.heldFlags = true, *w.regs, w.flags
	}
	if w.aborted {
		return n.abort(), true
	}
	return 0, false
}

// visit decides what becomes of a managed frame.
func (n *Snapshotter) visit(c *shownCode, callerSP arch.Addr) {
	w := &n.walk
	if n.passed(callerSP) {
		n.dead(c)
		return
	}
	if w.skip == skipOne || w.skip == skipToParent && callerSP == w.skipTo {
		w.skip = skipNone
	}
	if w.skip == skipNone && c.code.Funclet {
		w.skip, w.skipTo = n.parent(&c.code, callerSP)
	}
	if w.missing != 0 || w.skip != skipNone {
		return
	}
	if c.hidden != 0 {
		w.lack, w.missing = unwindTexts[unwindNoName], c.hidden
		return
	}
	if c.visibility == clr.Hidden {
		return
	}
	// Only while an exception is in progress is there a dispatcher.
	if c.dispatching != 0 && w.thread.Exception != 0 {
		w.lack, w.missing = unwindTexts[unwindNoName], c.dispatching
		return
	}
	w.stops++
	// Since .NET 9 managed code dispatches exceptions. Its frames are not
	// reported, nor are the native runs on both sides of them: the younger one
	// is held back for that, the older never held.
	if w.inDispatcher = c.dispatcher; c.dispatcher {
		w.held = false
		return
	}
	n.flush()
	if c.visibility == clr.Visible && !w.aborted {
		n.report(FunctionID(c.code.Method), w.regs, w.flags)
	}
}

// dead takes note of a frame that the exception in progress has unwound: it is
// silent, and the native run behind it is reported all the same, unless it is one of
// the exception dispatcher. Its own native caller never is (net9-callbacks-x64,
// exc-rethrow@024: the run that called the dead handler, none behind the dispatcher
// that had found it).
func (n *Snapshotter) dead(c *shownCode) {
	w := &n.walk
	if c.dispatching != 0 && !w.callerManaged {
		w.lack, w.missing = unwindTexts[unwindNoName], c.dispatching
	}
	w.inDispatcher = c.dispatcher
}

// passed reports whether the frame or Frame at v has been unwound already by
// the exception in progress.
func (n *Snapshotter) passed(v arch.Addr) bool {
	w := &n.walk
	return w.hasTracker && n.rp.Unwound(&w.tracker, v)
}

// parent finds the frame of the method that funclet c is a handler of, for
// which the walk then hides everything up to it
// (ExceptionTracker::FindParentStackFrame, src/coreclr/vm/exceptionhandling.cpp).
func (n *Snapshotter) parent(c *clr.Code, callerSP arch.Addr) (skip, arch.Addr) {
	w := &n.walk
	filter, known := n.rp.Filter(c)
	if filter {
		return skipNone, 0 // it is reported, and so are the frames that it judges
	}
	if w.callerUnknown != 0 {
		w.lack, w.missing = unwindTexts[unwindNoCode], w.callerUnknown
		return skipNone, 0
	}
	native := !w.callerManaged
	if n.system.runtimeCallsHandlers {
		native = n.rp.InRuntime(n.pcOf(w.caller))
	}
	if !native {
		return skipOne, 0 // a finally that its own method calls
	}
	e, ok := w.tracker, w.hasTracker
	missing := arch.Addr(0)
	for i := 0; ok && i < maxTrackers; i++ {
		if e.Scanned() && e.Funclet == callerSP {
			if _, _, clause := n.rp.KnowsExceptions(); !known && !clause {
				w.lack, w.missing = noException, e.Addr
				return skipNone, 0
			}
			if !known && e.Filter {
				return skipNone, 0
			}
			return skipToParent, e.Enclosing
		}
		if e.Prev == 0 {
			break
		}
		e, missing, ok = n.rp.ExInfoAt(e.Prev, w.thread)
	}
	w.lack, w.missing = noException, missing
	return skipNone, 0
}

// explicitFrame takes what the current explicit Frame restores.
func (n *Snapshotter) explicitFrame() (hr HRESULT, over bool) {
	w := &n.walk
	f := w.frames.frame
	switch {
	case f.Kind != clr.UnknownFrame:
	case !n.rp.KnowsFrames():
		return n.fault("it cannot be found out of which kind an explicit Frame is", 0), true
	default:
		return n.broken("an explicit Frame is of a kind that is not known", f.Addr), true
	}
	if w.skip == skipNone && !n.passed(f.Addr) {
		if has, missing := n.rp.HasMethod(f); has {
			w.stops++
		} else if missing != 0 {
			w.unsure = missing
		}
	}
	*w.caller = *w.regs
	pc, missing := n.updateRegs(f, w.caller)
	// The runtime asks first whether the Frame leads to managed code.
	c := n.lookup(pc)
	if at := n.unknown(c); at != 0 {
		return n.fault(unwindTexts[unwindNoCode], at), true
	}
	if missing != 0 && (c.managed() || pc == 0) {
		return n.fault(unwindTexts[unwindNoFrame], missing), true
	}
	if c.managed() && w.inlined != f.Addr {
		ctx, _ := n.rp.ContextOf(f)
		if ctx != 0 {
			if w.flags, missing = n.ctx.flagsAt(n.mem, ctx); missing != 0 {
				return n.fault(unwindTexts[unwindNoFrame], missing), true
			}
		}
		w.regs, w.caller, w.exact = w.caller, w.regs, ctx != 0
		if w.mode == OSSuspended && n.rp.Resumable(f) {
			return n.fail("the operating system suspended a thread that the runtime had interrupted before", f.Addr), true
		}
		// This one stays: the managed frame that it leads to holds it, and
		// drops it. Where that does not (no runtime makes such a chain), it is
		// passed the second time.
		if f.Kind == clr.InlinedCallFrame {
			w.inlined = f.Addr
			return 0, false
		}
	}
	w.frames.next(n.rp)
	return n.chainEnd()
}

// chainEnd ends the walk where the chain of explicit Frames is broken.
func (n *Snapshotter) chainEnd() (hr HRESULT, over bool) {
	switch c := &n.walk.frames; {
	case c.lost != 0:
		return n.fault(brokenChain, c.lost), true
	case c.turned != 0:
		return n.broken(brokenChain, c.turned), true
	}
	return 0, false
}
