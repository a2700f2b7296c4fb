package profiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A FunctionID is a profiler's name of a method: its MethodDesc, the canonical
// one for shared code. 0 stands for a run of native frames.
type FunctionID arch.Addr

// A ThreadID is a profiler's name of a thread: its Thread object.
type ThreadID arch.Addr

// A Mode says who walks the thread.
type Mode uint8

const (
	// Self: the thread walks itself, in a profiler's callback or in native code
	// that it has called.
	Self Mode = iota
	// Suspended: another thread walks it, after ICorProfilerInfo10::SuspendRuntime.
	Suspended
	// OSSuspended: another thread walks it, without; on Windows DoStackSnapshot
	// then stops it with SuspendThread, elsewhere it refuses.
	OSSuspended
)

var modes = [...]string{Self: "self", Suspended: "suspended", OSSuspended: "os-suspended"}

func (m Mode) String() string { return modes[m] }

// ParseMode is the inverse of Mode.String.
func ParseMode(s string) (Mode, error) {
	for m, name := range modes {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("mode %q is none of self, suspended, os-suspended", s)
}

// COR_PRF_SNAPSHOT_REGISTER_CONTEXT of COR_PRF_SNAPSHOT_INFO asks for a context
// in each callback (src/coreclr/inc/corprof.idl). The documentation calls it
// COR_PRF_SNAPSHOT_CONTEXT.
const COR_PRF_SNAPSHOT_REGISTER_CONTEXT = 1

// A Request is a call of ICorProfilerInfo2::DoStackSnapshot, with what a dump
// cannot tell of the caller.
type Request struct {
	// Thread is the target's ThreadID. 0 means the calling thread, which is
	// then the one of TID.
	Thread ThreadID
	TID    uint32 // of the calling thread, if Thread is 0
	Mode   Mode
	Flags  uint32 // COR_PRF_SNAPSHOT_INFO
	// Context is the seed, a CONTEXT as long as its control and integer
	// registers at least; nil for none.
	Context     []byte
	ContextSize uint32 // as the profiler gives it: the runtime never looks at it
	ClientData  any

	// NoStackSnapshot: the profiler's event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT.
	NoStackSnapshot bool
	// FilterContext is the context that a debugger has set for the thread; nil
	// for none. A dump does not tell.
	FilterContext []byte
	// InSyscall overrides, for an OSSuspended cooperative thread of Windows,
	// whether it is in a system call, in which its context cannot be had. By
	// itself Do looks for a system-call instruction before the pc.
	InSyscall *bool
}

// A Call is one call of a StackSnapshotCallback. What it refers to is valid
// until the callback returns.
type Call struct {
	Function    FunctionID // 0 for a run of native frames
	IP          arch.Addr
	ContextSize uint32 // sizeof(CONTEXT) of the runtime, or 0 without COR_PRF_SNAPSHOT_REGISTER_CONTEXT
	ClientData  any

	owner *Snapshotter
	gen   uint64
}

// ErrCallOver is the error of using a Call after its callback has returned.
var ErrCallOver = errors.New("the callback that this belongs to has returned: its frame info and context were the walker's own")

// Context returns the CONTEXT that the callback is given, nil without
// COR_PRF_SNAPSHOT_REGISTER_CONTEXT. Of its registers the pc, the stack and
// frame pointers and those that calls preserve can be relied on, except that a
// frame which called native code directly has only the first three.
func (c *Call) Context() ([]byte, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return nil, ErrCallOver
	}
	if c.ContextSize == 0 {
		return nil, nil
	}
	return c.owner.buf, nil
}

// Registers is Context as registers; unlike it, it is there without the flag.
func (c *Call) Registers() (*arch.Regs, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return nil, ErrCallOver
	}
	return c.owner.shown, nil
}

// A FrameInfo is what a COR_PRF_FRAME_INFO points to (the runtime's
// _COR_PRF_FRAME_INFO_INTERNAL, src/coreclr/vm/proftoeeinterfaceimpl.h).
type FrameInfo struct {
	Size, Version uint16
	Function      FunctionID
	IP            arch.Addr
	// ExtraArg and ThisArg are always 0 in a stack snapshot: they do not help to
	// tell the exact instantiation of shared code.
	ExtraArg, ThisArg arch.Addr
}

const (
	frameInfoSize    = 40 // with 8-byte pointers
	frameInfoVersion = 1
)

// FrameInfo returns what the callback's frame info points to.
func (c *Call) FrameInfo() (FrameInfo, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return FrameInfo{}, ErrCallOver
	}
	return FrameInfo{Size: frameInfoSize, Version: frameInfoVersion, Function: c.Function, IP: c.IP}, nil
}

// A Callback is a profiler's StackSnapshotCallback. Any answer but S_OK ends
// the walk.
type Callback func(Call) HRESULT

// A Snapshotter does over a dump what ICorProfilerInfo2::DoStackSnapshot does
// in the process. It is not safe for concurrent use; make one for each goroutine.
type Snapshotter struct {
	s   *managed.Session
	rt  *clr.Runtime
	rp  *clr.Replay
	a   *arch.Arch
	mem arch.Memory
	ctx context

	byID    map[ThreadID]*code.Thread
	tids    map[ThreadID]uint32
	noBound bool   // the runtime does not check the stack's lower bound
	cut     string // what is wrong with the list of managed threads, or ""

	cache    [snapshotCache]snapshotCode
	eh       map[arch.Addr]dispatcherClass // by MethodTable
	zero     arch.Regs                     // every register known, and 0
	system   *system
	busy     bool
	gen      uint64
	buf      []byte     // the live CONTEXT
	shown    *arch.Regs // the registers in buf
	callback Callback
	req      Request
	walk     snapshotWalk
	why      Why
	step     unwind.Step
	caller   arch.Caller     // what unwinding has found, here because it is large
	walker   *managed.Walker // of seeds
	frames   []managed.Frame
}

// ErrNoRuntime is the error of asking for a replay where there is nothing to
// replay: the process has no CoreCLR, or none that could be read. The error that
// wraps it says which.
var ErrNoRuntime = errors.New("no runtime to replay")

// New returns a Snapshotter over the threads of the CoreCLR of s, the first one if
// the process has several. Without one the error is ErrNoRuntime.
func New(s *managed.Session) (*Snapshotter, error) {
	rt, err := RuntimeOf(s)
	if err != nil {
		return nil, err
	}
	return NewFor(s, rt)
}

// NewFor returns a Snapshotter over the threads of rt, which must be a runtime of s.
func NewFor(s *managed.Session, rt *clr.Runtime) (n *Snapshotter, err error) {
	if s == nil || rt == nil || !slices.Contains(s.Runtimes, code.Runtime(rt)) {
		return nil, fmt.Errorf("%w: the runtime is none of the session's", ErrNoRuntime)
	}
	if lost := s.Process.GuardRetry(func() { n, err = newSnapshotter(s, rt) }); lost != nil {
		return nil, lost
	}
	return n, err
}

// RuntimeOf returns the CoreCLR of s, the first one if the process has several.
// Without one the error is ErrNoRuntime.
func RuntimeOf(s *managed.Session) (*clr.Runtime, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: there is no session", ErrNoRuntime)
	}
	for _, rt := range s.Runtimes {
		if rt, ok := rt.(*clr.Runtime); ok {
			return rt, nil
		}
	}
	if len(s.Warnings) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoRuntime, s.Warnings[0].Text)
	}
	return nil, fmt.Errorf("%w: there is none in this process", ErrNoRuntime)
}

func newSnapshotter(s *managed.Session, rt *clr.Runtime) (*Snapshotter, error) {
	n := &Snapshotter{s: s, rt: rt, rp: rt.Replay(), a: s.Process.Arch, mem: s.Process.Memory,
		byID: map[ThreadID]*code.Thread{}, tids: map[ThreadID]uint32{}, eh: map[arch.Addr]dispatcherClass{},
		system: systemOf(s.Process.ABI)}
	var err error
	if n.ctx, err = contextOf(n.a, n.rp); err != nil {
		return nil, err
	}
	n.buf = make([]byte, max(n.ctx.l.Size, n.ctx.need()))
	n.noBound = muslBuild(s.Process)
	for r := range n.a.Names {
		n.zero.Set(arch.Reg(r), 0)
	}
	ts, warns := rt.Threads()
	if len(warns) > 0 {
		n.cut = warns[0].Text
	}
	for i := range ts {
		n.byID[ThreadID(ts[i].Addr)] = &ts[i]
	}
	for i := range s.Process.Threads {
		tid := s.Process.Threads[i].ID
		if t, of := s.Thread(tid); t != nil && of == rt {
			n.byID[ThreadID(t.Addr)] = t
			n.tids[ThreadID(t.Addr)] = tid
		}
	}
	return n, nil
}

// Runtime returns the runtime that n is of.
func (n *Snapshotter) Runtime() *clr.Runtime { return n.rt }

// Why says what decided the last Do.
func (n *Snapshotter) Why() Why { return n.why }

// Do calls callback as DoStackSnapshot would, and returns what it would
// return. Callbacks made before a failure stay made. It guards itself (see
// [loader.Process.Guard]): if the dump is cut meanwhile, Why is Missing.
func (n *Snapshotter) Do(req Request, callback Callback) (hr HRESULT) {
	if n.busy {
		n.why = Why{Row: 6, Text: "a callback asked for another walk of the thread that is being walked"}
		return CORPROF_E_STACKSNAPSHOT_UNSAFE
	}
	if err := n.s.Process.Guard(func() { hr = n.do(req, callback) }); err != nil {
		hr = n.lost(err)
	}
	return hr
}

// guardRetry is Process.GuardRetry for an f that uses what n remembers.
func (n *Snapshotter) guardRetry(f func()) error {
	again := false
	return n.s.Process.GuardRetry(func() {
		if again {
			n.forget()
		}
		again = true
		f()
	})
}

// forget drops what n remembers of memory: an entry may not be whole, or be of
// bytes that were lost.
func (n *Snapshotter) forget() {
	n.cache = [snapshotCache]snapshotCode{}
	clear(n.eh)
	if n.walker != nil {
		*n.walker = *n.s.NewWalker()
	}
}

// lost ends a call that the loss of a file has broken off.
func (n *Snapshotter) lost(err error) HRESULT {
	n.gen++ // a callback may have been broken off
	n.forget()
	n.why = Why{Text: err.Error(), Missing: true}
	return E_FAIL
}

func (n *Snapshotter) do(req Request, callback Callback) HRESULT {
	n.busy = true
	defer n.leave()
	n.why = Why{}
	n.callback, n.req = callback, req
	t, hr, refused := n.enter(&n.req)
	if refused {
		return hr
	}
	return n.run(t)
}

// leave forgets the profiler's call, also when its callback panics.
func (n *Snapshotter) leave() { n.busy, n.callback, n.req = false, nil, Request{} }
