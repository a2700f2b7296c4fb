package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A Runtime is one CoreCLR in a process. It is safe for concurrent use.
type Runtime struct {
	Version string        // "10.0.12", "" if not known
	How     string        // where layouts come from: "descriptor" or "table"
	Image   *loader.Image // libcoreclr, coreclr.dll or the single-file executable

	proc *loader.Process
	mem  *loader.Memory
	data *contract
}

// A Code says what lies at a pc of managed code. It is a value: looking code
// up allocates nothing.
type Code struct {
	Kind    CodeKind
	Funclet bool      // the pc lies in a handler (catch, finally, filter), a function of its own
	Method  arch.Addr // MethodDesc, the canonical one for shared code; 0 if not known
	Start   arch.Addr // first byte of the method's code; of the method, not of the funclet
	Body    arch.Span // the body or the funclet, as its RUNTIME_FUNCTION has it
	Base    arch.Addr // what RVAs in unwind information are relative to
	Unwind  uint32    // RVA of the unwind information
	Header  arch.Addr // JIT: the RealCodeHeader; ReadyToRun: the ReadyToRunInfo
	Index   uint32    // ReadyToRun: index of the method's (not the funclet's) RUNTIME_FUNCTION
}

// A CodeKind says who made code.
type CodeKind uint8

const (
	NotManaged CodeKind = iota
	JIT                 // compiled at run time
	ReadyToRun          // compiled ahead, in an image
	Stub                // a precode, dispatch stub or the like: not managed by the profiler's contract
)

func (k CodeKind) String() string {
	return [...]string{"native", "jit", "r2r", "stub"}[k]
}

// A Thread is a managed Thread object.
type Thread struct {
	Addr        arch.Addr // of the Thread object: the profiler's ThreadID
	ID          uint32    // managed thread id
	OSID        uint64    // TID of the OS thread; 0 if it has none
	State       uint32
	Cooperative bool
	Frame       arch.Addr // topmost explicit Frame; all ones if there is none
	Exception   arch.Addr // newest ExInfo; 0 if no exception is in progress
	StackBase   arch.Addr // highest address of the stack; 0 if not known
	StackLimit  arch.Addr
	// A hijacked thread's return address lies in HijackReturn, while the slot
	// on its stack holds the runtime's trip stub. 0 if it is not hijacked.
	HijackSlot, HijackReturn arch.Addr
}
