package report

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A Head is what is known of a dump before a thread of it is walked.
type Head struct {
	Dump     Dump
	Runtimes []Runtime
	// Images returns the images by address. It is a function because telling
	// where their bytes come from looks for a file of each, which takes longer
	// than a small dump's stacks.
	Images func() []Image
}

// A Dump says what kind of dump it is, of which process.
type Dump struct {
	Path   string
	Format string // "elf-core" or "minidump"
	OS     string // "linux" or "windows"
	Arch   string // as GOARCH spells it
	PID    int    // 0: not known
	Crash  *Crash // nil: the dump does not say that the process crashed
}

// A Crash is the signal (Linux) or exception (Windows) that the dump was made for.
type Crash struct {
	TID     uint32
	Signal  uint32 // signal number or exception code
	Code    int32  // si_code
	Address arch.Addr
	HasAddr bool
}

// A Runtime is a managed runtime in the process.
type Runtime struct {
	Kind    string // "coreclr"
	Version string // "" if not known
	Image   string // name of the image that holds it
	How     string // where the layouts of its structures come from
}

// An Image is a file mapped into the process.
type Image struct {
	Name  string
	Path  string // as the dump has it
	ID    string // build id, or timestamp and size as symbol servers write them
	Span  arch.Span
	Bytes string // "dump", "file" or "none"
}

// A Thread is one thread and its stack.
type Thread struct {
	TID         uint32
	Name        string
	Managed     bool   // the runtime has a Thread object for it
	ManagedID   uint32 // of that
	Cooperative bool   // of that: the thread holds up a garbage collection
	Crashed     bool
	Exception   *Exception // in progress on the thread
	Frames      []Frame    // from leaf to root
	Omitted     Omitted
	Stop        Stop
}

// Omitted counts what [Builder.Limit] left out of a stack, at its root's end.
type Omitted struct {
	Frames int // without gaps
	Gaps   int
}

// An Exception is a managed exception in progress.
type Exception struct {
	Type       string // "": not known
	Message    string
	HasMessage bool      // Message is known
	Address    arch.Addr // of the object; 0: not known
}

// The kinds of a frame, as managed.Kind spells them.
const (
	kindNative  = "native"
	kindManaged = "managed"
	kindGap     = "gap"
)

// A Frame is one frame.
type Frame struct {
	PC arch.PC   // means nothing in a gap
	SP arch.Addr // 0: not known
	By string
	*Place
}

// A Place is what is told of the code at a pc; never nil in a Frame. All frames
// of a goroutine's stacks that are at the pc share it: a recursion 5,000 deep
// has three. An empty string is what is not known.
type Place struct {
	Kind     string
	Module   string
	Function string        // for eyes
	Symbol   string        // native: the name that its symbol table has
	Offset   uint64        // from the function's start; means nothing without Function
	Link     arch.LinkAddr // native, in an image: the pc as addr2line takes it
	Method   *Method
	Why      string // of a gap

	lacks *loader.Image // which would have had a name
}

// A Method is what the runtime says of a managed frame.
type Method struct {
	ID       arch.Addr // the MethodDesc; 0: not known
	Token    uint32    // 0: it has no metadata
	Name     string    // in the metadata; "" if not known
	ILOffset int64     // -1: not known
	Funclet  bool
	// FuncletKnown is false where the dump lacks what tells whether the pc
	// lies in a handler.
	FuncletKnown bool
	Code         string // "jit", "r2r" or "stub"
	Version      string // of tiered compilation; "" if not known
}

// A Stop is why a stack ends.
type Stop struct {
	Reason   string    // of the closed table in package unwind
	PC       arch.Addr // of the last frame; means nothing when there is none
	At       arch.Addr // what was missing, broken or unknown; 0: nothing was
	Complete bool
	Text     string
}

// A Warning is something that the dump should have, or a file that results
// would be better with.
type Warning struct {
	Code   string
	Text   string
	Offset int64 // in the dump; -1: none
}

// A Tail is what is known once all threads are written.
type Tail struct {
	Warnings []Warning
	Missing  []Missing
	Counts   Counts
}

// A Missing is an image of which a file would make the stacks better.
type Missing struct {
	Name, ID string
	Stops    int // stacks or parts of stacks that end for want of it
	Unnamed  int // frames without a name for want of it
}

// Counts sum up the stacks that were written.
type Counts struct {
	Threads                       int
	Whole                         int // of the threads: seen to their end, without a gap
	Gapped                        int // with a gap
	Frames, Managed, Unnamed, Gap int
}

// Whole reports whether the stack was seen from the leaf to the root, without a
// gap.
func (t *Thread) Whole() bool {
	if !t.Stop.Complete || t.Omitted.Gaps > 0 {
		return false
	}
	for i := range t.Frames {
		if t.Frames[i].Kind == kindGap {
			return false
		}
	}
	return true
}
