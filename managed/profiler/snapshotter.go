package profiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

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
	tids    map[ThreadID]uint32 // of those that the dump has an OS thread of
	noBound bool                // the runtime does not check the stack's lower bound
	cut     string              // what is wrong with the list of managed threads, or ""

	cache    [snapshotCache]snapshotCode
	eh       map[arch.Addr]dispatcherClass // by MethodTable
	zero     arch.Regs                     // every register known, and 0
	system   *system
	busy     bool       // a call is being made
	gen      uint64     // changes when a callback begins and when it returns
	buf      []byte     // the CONTEXT that a callback is given
	shown    *arch.Regs // the registers in buf
	callback Callback
	req      Request
	walk     snapshotWalk
	why      Why
	step     unwind.Step
	caller   arch.Caller     // what unwinding has found, here because it is large
	walker   *managed.Walker // of native frames, for seeds and views; see seedWalker
	frames   []managed.Frame // room for the stack of a thread whose seed is checked
	lazy     clr.LazyState   // of the helper's Frame that the walk is at
	noThread loader.Thread   // stands in for a thread that the dump has not
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
	// For musl the runtime is built with NO_FIXED_STACK_LIMIT and does not check a
	// walk against the stack's lower bound.
	n.noBound = s.Process.Musl()
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

// Method describes the method that a callback's FunctionID names. An error says
// which part could not be read; what could be is in the Method all the same. It is
// code.ErrNoMethod for 0, a run of native frames.
func (n *Snapshotter) Method(id FunctionID) (m code.Method, err error) {
	if id == 0 {
		return m, code.ErrNoMethod
	}
	if lost := n.guardRetry(func() { m, err = n.rt.MethodAt(arch.Addr(id)) }); lost != nil {
		return code.Method{}, lost
	}
	return m, err
}

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
