package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
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
	Code    code.Code    // managed code, or the stub that a native frame's pc lies in
	Runtime code.Runtime // whose code that is; nil for plain native code
	Why     unwind.Stop  // of a gap: why the frame before it could not be left
}

// A Walker walks one stack at a time. It is not safe for concurrent use; make
// one for each goroutine.
type Walker struct {
	s       *Session
	native  *unwind.Walker
	thread  *code.Thread
	frames  code.Framing // of the thread's runtime; nil if that keeps no Frames
	hijacks []unwind.Hijack
	tls     arch.Addr  // its thread pointer, or 0
	oldest  arch.Addr  // the last Frame of its chain; 0 if it has none
	chain   code.Chain // of which a rescue has passed some
	saved   savedRegs  // what Frames have of the managed frames ahead
	regs    arch.Regs  // room for those that a Frame holds
	left    int        // words that searches of this walk may still look at; see maxSearch
	now     Frame      // that the walk is at
	out     []Frame    // of Walk, so far
	gap     bool       // now is a gap, and the native walker is behind it
	n       int        // frames so far, without gaps
	stop    unwind.Stop
	cache   [cacheSize]lookup
	whole   code.Chain // chain and saved as they were at the leaf
	first   savedRegs
}

// A lookup is a remembered answer of Session.Lookup.
type lookup struct {
	pc   arch.Addr
	code code.Code
	rt   code.Runtime
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
	from, again := len(dst), false
	w.out = dst
	err := w.s.Process.GuardRetry(func() {
		if again {
			dst := w.out[:from]
			*w = *w.s.NewWalker() // what it remembers may be of bytes that were lost
			w.out = dst
		}
		again = true
		for ok := w.Start(t); ok; ok = w.Next() {
			w.out = append(w.out, w.now)
		}
	})
	if err != nil {
		w.stop = unwind.Stop{Reason: unwind.FileLost, PC: w.now.PC.Addr}
		if len(w.out) == from {
			w.stop.PC = 0
		}
	}
	dst, w.out = w.out, nil
	return dst, w.stop
}

// Start begins a walk of t's stack, at its leaf. It reports false, and Stop
// says why, if there is no frame to begin with.
func (w *Walker) Start(t *loader.Thread) bool {
	w.begin(t)
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
		if w.native.Exact() {
			w.faulted()
		}
		if w.saved.at.sp != 0 && w.saved.at.sp <= w.native.Low() {
			w.correct()
		}
		return w.arrive()
	}
	w.halt()
	if w.stop.Reason == unwind.FrameLimit || w.stop.Reason.Complete() && w.outermost() {
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
	if w.thread == nil {
		return
	}
	if on, known := w.thread.OnStack(f.SP); on || !known {
		return
	}
	a := w.s.Process.Arch
	for c := w.chain; ; {
		fr, ok := c.Pop()
		if w.left -= frameWords; !ok || w.left < 0 {
			return
		}
		if exact, ok := w.frames.Restore(fr, &w.regs); !exact || !ok {
			continue
		}
		if pc, _ := w.regs.Get(a.PC); arch.Addr(pc) == f.PC.Addr {
			w.native.Amend(&w.regs, true)
			return
		}
	}
}

// savedRegs are the frames that Frames of a chain hold callee-saved registers
// for, one at a time. The collector updates these registers where a Frame holds
// them, and code of the runtime that saves them tells no unwinder: JIT_New's slow
// path on x86-64 uses rbx and describes only its return address.
type savedRegs struct {
	rt     code.Framing
	pc, sp arch.Reg // the CPU's registers for these
	chain  code.Chain
	at     place // of the next such frame; its stack pointer is 0 if there is none
	regs   arch.Regs
	exact  bool // that frame was interrupted
}

// A place is where a frame is.
type place struct{ pc, sp arch.Addr }

// next turns to the next such frame.
func (s *savedRegs) next() {
	for s.at = (place{}); ; {
		f, ok := s.chain.Pop()
		if !ok {
			return
		}
		if f.SavesRegs && s.take(f) {
			return
		}
	}
}

// take turns to the frame that f leads to; it reports false if that is not known.
func (s *savedRegs) take(f code.Frame) bool {
	var ok bool
	if s.exact, ok = s.rt.Restore(f, &s.regs); ok {
		pc, _ := s.regs.Get(s.pc)
		sp, _ := s.regs.Get(s.sp)
		s.at = place{arch.Addr(pc), arch.Addr(sp)}
	}
	return ok
}

// correct gives the frame that the walk has come to the registers that a Frame
// holds for it, if one does. Only a Frame knows on ARM64 that the frame faulted: a
// handler of the runtime runs as if it had been called there. Of a fault in a write
// barrier the Frame leads to the barrier's caller, which did call.
func (w *Walker) correct() {
	for w.saved.at.sp != 0 && w.saved.at.sp <= w.native.Low() {
		now := w.native.Frame()
		if w.saved.at == (place{now.PC.Addr, now.SP}) {
			to := *w.native.Regs()
			for r := arch.Reg(0); r < arch.MaxRegs; r++ {
				if v, known := w.saved.regs.Get(r); known && (w.saved.exact || to.Known().Has(r) || w.s.Process.ABI.CalleeSaved.Has(r)) {
					to.Set(r, v)
				}
			}
			w.native.Amend(&to, now.PC.Exact || w.saved.exact && !w.now.PC.Exact)
		}
		w.saved.next()
	}
}

// Where nothing but a return address of zero says that a frame is the outermost,
// it must lie near the end of the stack: between them is a thread's own data, and
// for the main thread what the program was started with. Where the stack ends is
// told by the runtime, or by the thread pointer, to which libc gives the highest
// part of the stack of each thread that it starts.
const (
	maxRoot  = 64 << 10 // bytes between the two
	maxStack = 1 << 30  // bytes; a thread pointer further away lies elsewhere
)

// outermost reports whether the walk has come to the outermost frame, as its
// stop says. It has not if an explicit Frame lies further up the stack, or if a
// return address of zero, which a damaged stack may hold anywhere, lies far from
// the end of the stack or below other return addresses: the stop then says that it
// is a bad one.
func (w *Walker) outermost() bool {
	low, top := w.native.Low(), arch.Addr(0)
	if w.tls > low && w.tls-low < maxStack {
		top = w.tls
	}
	if w.thread != nil {
		if on, _ := w.thread.OnStack(low); on {
			top = w.thread.StackBase
		}
	}
	above := w.oldest >= low && w.oldest < top
	if w.stop.Reason != unwind.ZeroReturn {
		return !above
	}
	if above || top != 0 && top-low > maxRoot || w.callers(top) {
		w.stop.Reason = unwind.BadReturnAddress
		return false
	}
	return true
}

// callers reports whether there are return addresses further up the stack than
// the one that the walk has stopped at, up to top where that is known.
func (w *Walker) callers(top arch.Addr) bool {
	a, mem := w.s.Process.Arch, w.s.Process.Memory
	word := arch.Addr(a.Word)
	from := max(w.native.Low(), w.stop.At+word) &^ (word - 1)
	end := from + maxRoot
	if top != 0 {
		end = min(end, top)
	}
	for at := from; at < end; at += word {
		v, ok := mem.Word(at)
		if !ok {
			break
		}
		if w.left--; w.left < 0 {
			return true // the end of the stack is not believed unseen
		}
		ret := a.Strip(arch.Addr(v))
		if ret == 0 || !a.AfterCall(mem, ret) {
			continue
		}
		if is, _ := w.s.codeAt(ret - 1); is {
			return true
		}
	}
	return false
}

// blame corrects a stop at an address that nobody knows, where nobody could tell
// whether managed code lies there: what is missing is in the runtime's map of
// code, then.
func (w *Walker) blame() {
	pc := w.native.Frame().PC.Lookup()
	switch w.stop.Reason {
	case unwind.NoRule, unwind.UnknownCode:
	case unwind.BadReturnAddress:
		v, ok := w.s.Process.Memory.Word(w.stop.At)
		pc = w.s.Process.Arch.Strip(arch.Addr(v)) - 1
		if _, known := w.s.Process.Executable(pc); !ok || known {
			return
		}
	default:
		return
	}
	for _, rt := range w.s.Runtimes {
		if _, missing := rt.Lookup(pc); missing != 0 {
			w.stop.Reason, w.stop.At, w.stop.By = unwind.InfoMissing, missing, unwind.ByCodes
			return
		}
	}
}

// arrive takes note of the frame that the native walker is at. It writes in place:
// a Frame that is copied more often than needed is felt in the time of a walk.
func (w *Walker) arrive() bool {
	w.n++
	n, f := w.native.Frame(), &w.now
	f.Kind, f.By, f.PC, f.SP, f.Why = Native, n.By, n.PC, n.SP, unwind.Stop{}
	if len(w.s.Runtimes) == 0 {
		return true
	}
	l := w.lookup(n.PC.Lookup())
	f.Code, f.Runtime = l.code, l.rt
	if l.code.Managed() {
		f.Kind = Managed
	}
	return true
}

// begin turns to a thread.
func (w *Walker) begin(t *loader.Thread) {
	w.of(t)
	w.whole, w.first = w.chain, w.saved
	w.again()
}

// again turns back to the newest explicit Frame of the thread.
func (w *Walker) again() {
	w.n, w.gap, w.left = 0, false, maxSearch
	w.chain, w.saved = w.whole, w.first
}

// of finds out what the runtime knows of a thread.
func (w *Walker) of(t *loader.Thread) {
	thread, rt := w.s.Thread(t.ID)
	w.thread, w.tls = thread, t.TLS
	w.hijacks = w.hijacks[:0]
	w.frames, w.chain, w.saved, w.oldest = nil, code.Chain{}, savedRegs{}, 0
	if thread == nil {
		return
	}
	w.chain = code.ChainOf(rt, thread)
	if w.thread.HijackSlot != 0 {
		w.hijacks = append(w.hijacks, unwind.Hijack{Slot: w.thread.HijackSlot, Return: w.thread.HijackReturn})
	}
	var ok bool
	if w.frames, ok = rt.(code.Framing); !ok {
		return
	}
	w.saved.rt, w.saved.pc, w.saved.sp = w.frames, w.s.Process.Arch.PC, w.s.Process.Arch.SP
	for c := w.chain; ; {
		f, ok := c.Pop()
		if !ok {
			break
		}
		if w.oldest = f.Addr; !f.SavesRegs {
			continue
		}
		if w.saved.at.sp == 0 {
			w.saved.chain = c
			w.saved.take(f)
		}
		if ret, sp, ok := w.frames.TrippedHijack(f); ok {
			w.hijacks = append(w.hijacks, unwind.Hijack{Slot: sp, Return: ret, SP: sp})
		}
	}
}

// lookup is Session.Lookup with a memory.
func (w *Walker) lookup(pc arch.Addr) *lookup {
	l := &w.cache[(uint64(pc)^uint64(pc)>>17)%cacheSize]
	if l.pc != pc || pc == 0 {
		l.pc = 0 // until all is known: a read can break off
		if l.code, l.rt = w.s.Lookup(pc); l.rt != nil {
			if rt, ok := l.rt.(code.Completing); ok {
				rt.Complete(&l.code)
			}
		}
		l.pc = pc
	}
	return l
}
