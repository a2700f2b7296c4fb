package code

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

// A Runtime is one managed runtime in a process. It is read-only, and safe for
// concurrent use. What it reads of the process's memory may be missing: then it
// says less, and never something wrong.
//
// A Runtime is a pointer, or another value that can be compared: names of methods
// are kept in maps by their runtime.
type Runtime interface {
	// Info says which runtime this is.
	Info() Info
	// Lookup says which code of the runtime's lies at pc: Kind NotManaged if
	// none does. If that, or a part of the answer, could not be found out because
	// bytes are missing from the dump, missing is the address of the first of
	// them, and c has what is known all the same. It is asked for each frame, so
	// it must be quick, and must not allocate.
	Lookup(pc arch.Addr) (c Code, missing arch.Addr)
	// Describe names the method of c, of which nothing but Method needs to be
	// set where that is not 0. An error says which part could not be read; what
	// could be is in the Method all the same. The error is ErrNoMethod if it is
	// not known which method c belongs to.
	Describe(c *Code) (Method, error)
}

// An Info says which runtime a Runtime is.
type Info struct {
	Kind    string        // in one word, as "coreclr"
	Version string        // "10.0.12", "" if not known
	Commit  string        // of the sources that it was built from, in hex, "" if not known
	Image   *loader.Image // that the runtime is in; nil if that is not known
	How     string        // where its structures' layouts come from: for CoreCLR "descriptor", "table" or "descriptor and table"
	// Lacks is what would be read of a runtime of its kind and is not known of this
	// one, as "Thread.Frame" for a field of a structure; nil if nothing is.
	Lacks []string
}

// A Finder finds the runtimes of one kind in a process. The table of package
// managed has a Finder for each kind that Seam reads, and managed.Options takes
// more.
//
// It returns the runtimes of its kind in p, none if p has none. A runtime that was
// found and cannot be read is a warning that says why.
type Finder func(p *loader.Process) ([]Runtime, []loader.Warning)

// Unwinding is a runtime that knows how its code is left. Code of a runtime that
// does not is left as native code without unwind information is: by following
// its instructions, or by the saved frame pointer.
type Unwinding interface {
	// Sources returns what knows it, in the order in which it is to be asked.
	Sources() []unwind.Known
}

// Completing is a runtime that can find out more of code than Lookup has time
// for.
type Completing interface {
	// Complete fills what Lookup has left out of c because bytes are missing:
	// Method, if the runtime finds it in other ways. It is asked once for each pc
	// that a walk meets.
	Complete(c *Code)
}

// Listing is a runtime that can list the code that it has made.
type Listing interface {
	// Compiled yields every piece of code that was made at run time and is still
	// alive, in any order, until yield returns false.
	Compiled(yield func(Compiled) bool)
}

// Threading is a runtime that knows threads.
type Threading interface {
	// Threads returns them, and a warning where the list is cut or broken.
	Threads() ([]Thread, []loader.Warning)
}

// Framing is a runtime that keeps explicit Frames on its threads' stacks.
type Framing interface {
	// FrameAt reads the Frame at a; ok is false where the dump lacks it.
	FrameAt(a arch.Addr) (f Frame, ok bool)
	// Restore sets in regs what f restores: at least the pc and the stack
	// pointer of the frame that f leads to, and whichever other registers f has
	// saved; all others are not known then. exact reports whether that frame was
	// interrupted rather than calling; ok is false if f leads nowhere, or the
	// dump lacks its bytes.
	Restore(f Frame, regs *arch.Regs) (exact, ok bool)
	// TrippedHijack returns, for the Frame of a thread that has returned through
	// a hijacked return address, the true return address and the stack pointer
	// behind that return; ok is false for any other Frame. It is asked of Frames
	// with SavesRegs only.
	TrippedHijack(f Frame) (ret, sp arch.Addr, ok bool)
}

// Replacing is a runtime that replaces methods by others while they run (on-stack
// replacement). Return addresses of the replaced method may then still lie on the
// stack.
type Replacing interface {
	// MayBeReplaced reports whether the method of c may have been replaced on
	// the stack, or the dump lacks what would say so. What only looks like a
	// frame of such a method may be none.
	MayBeReplaced(c *Code) bool
}

// Mapping is a runtime that knows which instruction of the intermediate language
// machine code was made from.
type Mapping interface {
	// ILOffset returns which byte of its method's IL the frame at pc stands at, as
	// the runtime's own stack traces would say it; ok is false if it is not known.
	ILOffset(pc arch.PC) (off uint32, ok bool)
}

// Inlining is a runtime that knows which calls were inlined where it compiled a
// method.
type Inlining interface {
	// Inlined returns the calls that were inlined where the frame at pc, which lies
	// in c, stands, the innermost first; none where that is not known. The last one
	// was inlined into the method that the frame is of.
	Inlined(pc arch.PC, c *Code) []Inlined
}

// An Inlined is a method whose code was put into its caller's.
type Inlined struct {
	Method   arch.Addr // its identity, see Code.Method
	ILOffset uint32    // which byte of its IL stands there
}
