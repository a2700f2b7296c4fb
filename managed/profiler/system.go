package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A system is what a DoStackSnapshot does in one way on one operating system and
// in another way on another. It is about CoreCLR, not about the ABI: the runtime
// is compiled with TARGET_UNIX or without.
type system struct {
	os string // as arch.ABI spells it
	// stopsThreads: the runtime can stop a thread and ask the operating system for
	// its registers (SuspendThread, GetThreadContext), so that a profiler may ask for
	// a walk of another thread without SuspendRuntime (mode OSSuspended), and for one
	// of a thread in cooperative mode.
	stopsThreads bool
	// catchesFaults: a walk that reads memory which is not there ends with
	// E_UNEXPECTED. Elsewhere the process dies of the signal.
	catchesFaults bool
	// runtimeCallsHandlers: a catch, finally or filter handler whose caller is not
	// in the image of the runtime was called by its own method. Elsewhere the same
	// is said by a managed caller.
	runtimeCallsHandlers bool
}

// systems lists the operating systems on which the runtime does otherwise than on
// Linux.
var systems = []system{
	{os: arch.Windows, stopsThreads: true, catchesFaults: true, runtimeCallsHandlers: true},
}

// systemOf returns what the runtime does on the operating system of abi.
func systemOf(abi *arch.ABI) *system {
	for i := range systems {
		if systems[i].os == abi.OS {
			return &systems[i]
		}
	}
	return &system{os: abi.OS}
}

// ModeFor returns the mode in which a profiler walks t, a thread of a process of
// that ABI, as it stands; t is nil for a thread that the runtime does not know. In
// cooperative mode, where it runs managed code, another thread can walk it only on
// some systems: elsewhere it walks itself.
func ModeFor(abi *arch.ABI, t *code.Thread) Mode {
	switch {
	case t == nil:
		return Self
	case !t.Cooperative:
		return Suspended
	case systemOf(abi).stopsThreads:
		return OSSuspended
	}
	return Self
}
