package stacks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A Thread is one thread and its stack.
type Thread struct {
	TID       uint32
	Name      string     // that the program or the system gave it; "" if it has none
	Role      code.Role  // what a runtime has it for; "" if nothing, or not known. Some are known by the functions of its stack
	Mode      Mode       // of the runtime's Thread object
	ManagedID uint32     // of the runtime's Thread object; 0: not known, or Mode is [Unmanaged]
	Crashed   bool       // it ended the process: see [Stacks.Cause]
	Exception *Exception // a managed exception in progress; nil if there is none
	Frames    []Frame    // from the leaf to the root
	Omitted   Omitted    // what [Options.Limit] left out
	Stop      Stop       // why the stack ends
}

// A Mode says whether a thread holds up a garbage collection.
type Mode string

const (
	Unmanaged   Mode = ""            // the runtime has no Thread object for the thread
	Cooperative Mode = "cooperative" // it may hold references: a collection waits for it
	Preemptive  Mode = "preemptive"  // a collection does not wait for it
)

// Managed reports whether the runtime has a Thread object for t.
func (t *Thread) Managed() bool { return t.Mode != Unmanaged }

// Omitted counts what [Options.Limit] left out of a stack, at its root's end.
type Omitted struct {
	Frames int // without gaps
	Gaps   int
}

// A Kind says what a frame is.
type Kind string

const (
	Native  Kind = "native"  // the stubs that a runtime makes are native
	Managed Kind = "managed" // a method, an IL stub or a dynamic method
	Gap     Kind = "gap"     // frames may be missing here; Why says why
	Inline  Kind = "inline"  // a call that was put into its caller's code; only in Place.Inlined
)

// A Frame is one frame of a stack.
type Frame struct {
	PC arch.PC   // means nothing in a gap
	SP arch.Addr // 0: not known
	By string    // how the frame was found, as [unwind.By] spells it; "" in a gap
	*Place
}

// A Place is what is known of the code at a pc. A Frame always has one. Frames
// that stand at the same pc share it, in a stack and among stacks: a recursion
// that is 5,000 deep has three. So a Place is not to be written to. An empty
// string is what is not known.
type Place struct {
	Kind     Kind
	Module   string        // file name of the image, or of a managed method's assembly
	Function string        // for eyes: demangled, and without what a C# compiler made of a name
	Symbol   string        // native: the name that the image's symbol table has
	Offset   uint64        // of the pc, in bytes from the function's start; means nothing without Function
	Link     arch.LinkAddr // native, in an image: the pc as addr2line and disassemblers of the file take it
	File     string        // managed: path of the source file, as the debugging information has it
	Line     int           // managed: in File, from 1 on, of the call or the instruction that runs; 0: not known
	Inlined  []*Place      // managed: calls that the compiler has inlined there, the innermost first, where it has kept them
	Method   *Method       // nil in native frames and gaps
	Why      *Stop         // of a gap: why the frame in front of it could not be left; else nil
}

// A Method is what the runtime says of a managed frame.
type Method struct {
	ID       arch.Addr // the MethodDesc, which the profiling API calls FunctionID; 0: not known
	Token    uint32    // in the metadata, 0x06xxxxxx; 0: the method has no metadata
	Name     string    // in the metadata, Namespace.Outer+Inner`1.Method; "" if not known
	ILOffset int64     // of the pc, in bytes from the start of the method's IL; -1: not known
	Funclet  bool      // the pc lies in a catch, finally, fault or filter block
	// FuncletKnown is false where the dump lacks what tells whether the pc lies
	// in such a block.
	FuncletKnown bool
	Code         string // "jit", "r2r" or "stub"
	Version      string // of tiered compilation; "" if not known
}

// A Stop is why a stack ends, or why a frame in front of a gap could not be left.
type Stop struct {
	Reason   string    // as [unwind.Reason] spells it: one of the list in docs/stops.md
	PC       arch.Addr // of the last frame; means nothing if there is none
	At       arch.Addr // what was missing, broken or unknown; 0: nothing was
	Complete bool      // the last frame has no caller: the whole stack was seen, but for gaps
	Text     string    // the reason in a clause, with the image that At lies in
}

// Whole reports whether the stack was seen from the leaf to the root, without a
// gap.
func (t *Thread) Whole() bool {
	if !t.Stop.Complete || t.Omitted.Gaps > 0 {
		return false
	}
	return !slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Kind == Gap })
}

// Clone returns a copy of t that nothing overwrites. [Stacks.Each] and
// [Stacks.All] hand out threads whose frames are overwritten soon.
func (t *Thread) Clone() *Thread {
	c := *t
	c.Frames = slices.Clone(t.Frames)
	return &c
}

// String tells the thread without its stack in a line, as in `3686 "worker",
// managed 6, preemptive, in System.IO.IOException: disk full`. The type and the
// message of an exception stand there as they are in the dump, control
// characters included.
func (t *Thread) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", t.TID)
	if t.Name != "" {
		fmt.Fprintf(&b, " %q", t.Name)
	}
	if t.Managed() {
		b.WriteString(", managed")
		if t.ManagedID != 0 {
			fmt.Fprintf(&b, " %d", t.ManagedID)
		}
		fmt.Fprintf(&b, ", %s", t.Mode)
	}
	if t.Role != code.RoleUnknown {
		b.WriteString(", " + roles[t.Role])
	}
	if t.Crashed {
		b.WriteString(", crashed")
	}
	if e := t.Exception; e != nil {
		b.WriteString(", in " + e.String())
	}
	return b.String()
}

// String tells what the code is called and where in it the pc lies, as in
// "pthread_cond_wait+0x1e8"; of a gap, why it is there. The name stands there as
// it is in the dump, control characters included.
func (p *Place) String() string {
	if p.Kind == Gap && p.Why != nil {
		return "frames may be missing here: " + p.Why.Text
	}
	return string(p.AppendSuffix([]byte(p.Function)))
}

// AppendSuffix appends to b what follows a function's name: the offset in it,
// and whether the pc lies in a handler. Code without a name has a question mark
// and the address that addr2line and disassemblers take, "? [0x5fb30e]", or what
// a debugger of the runtime takes, "? [MethodDesc 0x7f8225491860]".
func (p *Place) AppendSuffix(b []byte) []byte {
	switch {
	case p.Function == "" && p.Link != 0:
		b = strconv.AppendUint(append(b, "? [0x"...), uint64(p.Link), 16)
		return append(b, ']')
	case p.Function == "" && p.Method != nil && p.Method.ID != 0:
		b = strconv.AppendUint(append(b, "? [MethodDesc 0x"...), uint64(p.Method.ID), 16)
		return append(b, ']')
	case p.Function == "":
		return append(b, '?')
	}
	if p.Offset != 0 {
		b = strconv.AppendUint(append(b, "+0x"...), p.Offset, 16)
	}
	switch m := p.Method; {
	case m == nil:
	case m.Funclet:
		b = append(b, " (handler)"...)
	case !m.FuncletKnown:
		b = append(b, " (handler?)"...)
	}
	return b
}

// String says in a sentence why the stack ends.
func (s Stop) String() string {
	if s.Complete {
		return "end: " + s.Text
	}
	return "stopped here: " + s.Text
}
