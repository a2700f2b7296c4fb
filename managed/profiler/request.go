package profiler

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
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
	// OSSuspended: another thread walks it, without SuspendRuntime. On Windows
	// DoStackSnapshot then stops it with SuspendThread; elsewhere it refuses.
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

// A Request is a call of ICorProfilerInfo2::DoStackSnapshot, and what no dump says
// of the process that makes the call.
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
	// for none. No dump says which.
	FilterContext []byte
	// InSyscall says whether an OSSuspended thread in cooperative mode is in a
	// system call, in which Windows does not give its context. If it is nil, Do looks
	// for a system-call instruction in front of the pc.
	InSyscall *bool
}
