package code

import "github.com/seamwalk/seam/arch"

// A Thread is a thread as a runtime knows it.
type Thread struct {
	Addr        arch.Addr // of the runtime's object: for CoreCLR the Thread object, which is the profiler's ThreadID
	ID          uint32    // the runtime's own number for it
	OSID        uint64    // TID of the OS thread; 0 if it has none
	State       uint32    // the runtime's own bits: for CoreCLR Thread::m_State
	Dead        bool      // the runtime counts it as ended; its OS thread may still be on its way out
	Detached    bool      // it has no OS thread any more: OSID may be another thread's by now
	Cooperative bool      // a collection has to wait for it: it may touch managed objects
	// Frame is its newest explicit Frame, EndOfFrames if it has none. See Framing.
	Frame arch.Addr
	// Exception is where the runtime keeps the state of the newest exception in
	// progress; 0 if there is none.
	Exception arch.Addr
	// StackBase is the highest address of the stack, StackLimit the lowest. Both
	// are 0 if they are not known.
	StackBase, StackLimit arch.Addr
	// A hijacked thread's return address is HijackReturn, while HijackSlot on
	// its stack holds the address of a stub of the runtime's. Both are 0 if it
	// is not hijacked.
	HijackSlot, HijackReturn arch.Addr
	// HijackLost is the address of the first word that the dump lacks of these
	// two, if the thread is hijacked; else 0.
	HijackLost arch.Addr
}

// OnStack reports whether a lies on the stack of t. known is false where the
// dump does not say where that stack is.
func (t *Thread) OnStack(a arch.Addr) (on, known bool) {
	return a >= t.StackLimit && a < t.StackBase, t.StackBase != 0
}

// A Frame is a record that a runtime keeps on a thread's stack where managed code
// has called native code, or where the runtime has interrupted it: CoreCLR calls
// it an explicit Frame (src/coreclr/vm/frames.h). The Frames of a thread are a
// chain from the newest to the oldest.
type Frame struct {
	Addr arch.Addr
	Next arch.Addr // the next older Frame, EndOfFrames if there is none
	Kind uint8     // the runtime's own number for its class
	// SavesRegs: it holds callee-saved registers of the managed frame that it
	// leads to.
	SavesRegs bool
	// Roughly: the place that it holds is near the call that it was made for,
	// and not the very one, as a CoreCLR InlinedCallFrame's.
	Roughly bool
}

// EndOfFrames is the Next of the oldest Frame of a chain (CoreCLR's FRAME_TOP).
const EndOfFrames = ^arch.Addr(0)

// A Chain is what is left of a thread's chain of explicit Frames, from the newest
// on. The zero value is empty. It is a value: a copy goes on by itself.
type Chain struct {
	rt   Framing
	next arch.Addr
	n    int
}

// MaxChain bounds a chain. A stack of 8 MiB has room for as many Frames of the
// smallest kind.
const MaxChain = 1 << 18

// ChainOf returns the chain of t, a thread of rt. It is empty if rt keeps no
// Frames.
func ChainOf(rt Runtime, t *Thread) Chain {
	f, ok := rt.(Framing)
	if !ok {
		return Chain{}
	}
	return Chain{rt: f, next: t.Frame}
}

// Pop returns the newest Frame and takes it off the chain. ok is false where the
// chain ends, or where it is broken: a Frame lies above all newer ones.
func (c *Chain) Pop() (f Frame, ok bool) {
	if c.rt == nil || c.next == EndOfFrames || c.next == 0 || c.n >= MaxChain {
		return f, false
	}
	if f, ok = c.rt.FrameAt(c.next); !ok {
		c.next = EndOfFrames
		return f, false
	}
	c.n++
	if c.next = f.Next; f.Next <= f.Addr {
		c.next = EndOfFrames
	}
	return f, true
}

// Naming is a runtime that knows what its threads are called, and what for they are.
type Naming interface {
	// ThreadName returns the name that the program has given t, "" if it has
	// given none or if that is not known.
	ThreadName(t *Thread) string
	// Role says what t is for.
	Role(t *Thread) Role
}

// A Role is what a thread is for, in one word.
type Role string

const (
	RoleUnknown    Role = "" // the program's own, or not known
	RoleFinalizer  Role = "finalizer"
	RoleThreadPool Role = "threadpool" // a worker of the thread pool, or its gate
	RoleTiering    Role = "tiering"    // compiles methods anew that run often
	RoleGC         Role = "gc"         // collects garbage, and does nothing else
	RoleDebugger   Role = "debugger"   // serves debuggers
	RoleWaits      Role = "waits"      // ends the waits of other threads
	RoleSignals    Role = "signals"    // handles signals
)
