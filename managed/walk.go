package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// A Kind says what a frame is.
type Kind uint8

const (
	Native  Kind = iota
	Managed      // a managed method, an IL stub and a dynamic method among them
	Gap          // frames may be missing here; Why says why
)

func (k Kind) String() string { return [...]string{"native", "managed", "gap"}[k] }

// A Frame is one frame of a stack.
type Frame struct {
	Kind    Kind
	By      unwind.By
	PC      arch.PC
	SP      arch.Addr
	Code    clr.Code     // managed code, or the stub that a native frame's pc lies in
	Runtime *clr.Runtime // whose code that is; nil for plain native code
	Why     unwind.Stop  // of a gap: why the frame before it could not be left
}

// A Walker walks one stack at a time. It is not safe for concurrent use; make
// one for each goroutine.
type Walker struct {
	s       *Session
	native  *unwind.Walker
	thread  *clr.Thread
	rt      *clr.Runtime
	hijacks []unwind.Hijack
	chain   chain
	regs    arch.Regs // of a frame found by a rescue
	now     Frame     // that the walk is at
	gap     bool      // now is a gap, and the native walker is behind it
	n       int       // frames so far, without gaps
	stop    unwind.Stop
	cache   [cacheSize]lookup
}

// A lookup is a remembered answer of Session.Lookup.
type lookup struct {
	pc   arch.Addr
	code clr.Code
	rt   *clr.Runtime
}

// cacheSize is prime, so that the even strides of code do not collide.
const cacheSize = 509

// NewWalker returns a walker over s.
func (s *Session) NewWalker() *Walker {
	return &Walker{s: s, native: s.unwinder.NewWalker()}
}

// Walk appends the frames of t's stack to dst, from leaf to root, and says why
// the stack ended. It guards itself (see [loader.Process.Guard]); who calls Start
// and Next does it himself.
func (w *Walker) Walk(dst []Frame, t *loader.Thread) ([]Frame, unwind.Stop) {
	out, again := dst, false
	err := w.s.Process.GuardRetry(func() {
		if again {
			*w = *w.s.NewWalker() // what it remembers may be of bytes that were lost
		}
		out, again = dst, true
		for ok := w.Start(t); ok; ok = w.Next() {
			out = append(out, w.now)
		}
	})
	if err != nil {
		w.stop = unwind.Stop{Reason: unwind.FileLost, PC: w.now.PC.Addr}
		if len(out) == len(dst) {
			w.stop.PC = 0
		}
	}
	return out, w.stop
}

// Start begins a walk of t's stack, at its leaf. It reports false, and Stop
// says why, if there is no frame to begin with.
func (w *Walker) Start(t *loader.Thread) bool {
	w.begin(t)
	w.n, w.gap = 0, false
	if !w.native.Start(&t.Regs, true, w.hijacks) {
		w.stop = w.native.Stop()
		return false
	}
	return w.arrive()
}

// Next moves on, to the caller or to the gap in front of it, or ends the walk.
func (w *Walker) Next() bool {
	switch {
	case w.gap: // the rescue has found the frame behind it
		w.gap = false
		return w.arrive()
	case w.n >= w.s.max:
		w.stop = unwind.Stop{Reason: unwind.FrameLimit, PC: w.now.PC.Addr, By: w.now.By}
		return false
	case w.native.Next():
		w.faulted()
		return w.arrive()
	}
	w.stop = w.native.Stop()
	if r := w.stop.Reason; r == unwind.NoRule || r == unwind.UnknownCode {
		w.blame()
	}
	if w.stop.Reason.Complete() || w.stop.Reason == unwind.FrameLimit {
		return false
	}
	last := w.native.Frame()
	if !w.rescue() {
		return false
	}
	w.now, w.gap = Frame{Kind: Gap, PC: last.PC, SP: last.SP, Why: w.stop}, true
	return true
}

// faulted corrects the registers of the frame that a stack overflow has
// interrupted. The runtime's handler then runs on a stack of its own, below
// frames that it made up so that unwinding leads from it to the faulting
// instruction (SwitchStackAndExecuteHandler in src/coreclr/pal/src/exception/
// signal.cpp of .NET 10): the pc is right, and the stack pointer still that of
// the handler's stack. The Frame that the handler has pushed has both.
func (w *Walker) faulted() {
	f := w.native.Frame()
	if t := w.thread; !f.PC.Exact || t == nil || t.StackBase == 0 || f.SP >= t.StackLimit && f.SP < t.StackBase {
		return
	}
	a := w.s.Process.Arch
	for c := w.chain; ; {
		fr, ok := c.pop()
		if !ok {
			return
		}
		if exact, ok := w.rt.Restore(fr, &w.regs); !exact || !ok {
			continue
		}
		if pc, _ := w.regs.Get(a.PC); arch.Addr(pc) == f.PC.Addr {
			w.native.Resume(&w.regs, true, f.By)
			return
		}
	}
}

// blame corrects a stop in code that nobody knows, where nobody could tell
// whether it is managed: what is missing is in the runtime's map of code, then.
func (w *Walker) blame() {
	pc := w.native.Frame().PC.Lookup()
	for _, rt := range w.s.Runtimes {
		if _, missing := rt.Lookup(pc); missing != 0 {
			w.stop.Reason, w.stop.At, w.stop.By = unwind.InfoMissing, missing, unwind.ByCodes
			return
		}
	}
}

// Frame returns the frame that the walk is at. It is overwritten by Next.
func (w *Walker) Frame() *Frame { return &w.now }

// Stop says why Start or Next returned false.
func (w *Walker) Stop() unwind.Stop { return w.stop }

func (w *Walker) arrive() bool {
	w.n++
	w.now = w.frame()
	return true
}

// begin turns to a thread.
func (w *Walker) begin(t *loader.Thread) {
	w.thread, w.rt = w.s.Thread(t.ID)
	w.hijacks = w.hijacks[:0]
	w.chain = chain{}
	if w.thread == nil {
		return
	}
	w.chain = chain{rt: w.rt, next: w.thread.Frame}
	if w.thread.HijackSlot != 0 {
		// The return leaves the stack pointer right above its slot.
		word := arch.Addr(w.s.Process.Arch.Word)
		w.hijacks = append(w.hijacks, unwind.Hijack{Slot: w.thread.HijackSlot, Return: w.thread.HijackReturn, SP: w.thread.HijackSlot + word})
	}
	for c := w.chain; ; {
		f, ok := c.pop()
		if !ok {
			return
		}
		if ret, sp, ok := w.rt.TrippedHijack(f); ok {
			w.hijacks = append(w.hijacks, unwind.Hijack{Slot: sp, Return: ret, SP: sp})
		}
	}
}

// frame describes the frame that the native walker is at.
func (w *Walker) frame() Frame {
	n := w.native.Frame()
	f := Frame{By: n.By, PC: n.PC, SP: n.SP}
	if len(w.s.Runtimes) == 0 {
		return f
	}
	l := w.lookup(n.PC.Lookup())
	f.Code, f.Runtime = l.code, l.rt
	if f.Code.Managed() {
		f.Kind = Managed
	}
	return f
}

// lookup is Session.Lookup with a memory.
func (w *Walker) lookup(pc arch.Addr) *lookup {
	l := &w.cache[(uint64(pc)^uint64(pc)>>17)%cacheSize]
	if l.pc != pc || pc == 0 {
		l.pc = 0 // until all is known: a read can break off
		if l.code, l.rt = w.s.Lookup(pc); l.rt != nil {
			l.rt.Complete(&l.code)
		}
		l.pc = pc
	}
	return l
}
