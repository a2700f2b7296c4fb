package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// The stack trace of an exception object (StackTraceArray of
// src/coreclr/vm/object.h, StackTraceElement of clrex.h, both of .NET 8 to 10) is
// an array of bytes: a head with the number of frames, then a structure for each.
// Where methods may be unloaded while somebody holds the exception, .NET 9 and 10
// have an array of objects in its place: the first is the array of bytes, the
// others keep those methods alive. .NET 8 keeps them in another field.

// Flags of a StackTraceElement (src/coreclr/vm/clrex.h).
const (
	elementRethrown = 1 // STEF_LAST_FRAME_FROM_FOREIGN_STACK_TRACE
	elementAdjusted = 2 // STEF_IP_ADJUSTED: ip is a return address less one
)

// maxTrace bounds the stack traces of an exception and of those that it leads to,
// together, in frames: each may have the same array for its own. A stack of 8 MiB
// that overflows has 260,000.
const maxTrace = 1 << 19

// traceOf reads the stack trace of the exception at obj, empty if it was never
// thrown. It is whole, or what is there of it: the frames nearest to the throw. One of
// more than most frames is not read.
func (r *Runtime) traceOf(obj arch.Addr, most int) (fs []code.TraceFrame, whole bool) {
	at, known := r.fieldObject(field(obj, r.names.ExcTrace))
	if at == 0 {
		return nil, known
	}
	v, ok := r.arrayAt(at)
	if ok && v.item == uint32(r.arch.Word) && v.count > 0 {
		if at, _ = r.fieldObject(v.data); at == 0 {
			return nil, false
		}
		v, ok = r.arrayAt(at)
	}
	if !ok || v.item != 1 {
		return nil, false
	}
	n := &r.names
	count, ok := r.u32(field(v.data, n.TraceCount))
	if !ok || n.TraceHead < 0 || uint32(n.TraceHead) > v.count || n.ElementSize <= 0 {
		return nil, false
	}
	if uint64(count) > uint64(most) || count > (v.count-uint32(n.TraceHead))/uint32(n.ElementSize) {
		return nil, false
	}
	for i := range count {
		f, ok := r.element(v.data + arch.Addr(n.TraceHead) + arch.Addr(i)*arch.Addr(n.ElementSize))
		if !ok {
			return fs, false
		}
		fs = append(fs, f)
	}
	return fs, true
}

// element reads the StackTraceElement at a.
func (r *Runtime) element(a arch.Addr) (f code.TraceFrame, ok bool) {
	n := &r.names
	ip, ok1 := r.word(field(a, n.ElementIP))
	sp, ok2 := r.word(field(a, n.ElementSP))
	md, ok3 := r.word(field(a, n.ElementMD))
	flags, ok4 := r.u32(field(a, n.ElementFlags))
	if !ok1 || !ok2 || !ok3 || !ok4 || md == 0 {
		return f, false
	}
	f.SP, f.Rethrown = arch.Addr(sp), flags&elementRethrown != 0
	// An element that was not adjusted is that of a fault. When the runtime prints a
	// trace it looks one byte in front of that, too, which in optimized code may
	// belong to the statement before (DebugStackTrace::Element::InitPass2,
	// src/coreclr/vm/debugdebugger.cpp of .NET 9: a program printed the line above
	// that of its null reference). A stored trace has the lines that were printed.
	f.PC = arch.PC{Addr: arch.Addr(ip)}
	if ip != 0 && flags&elementAdjusted != 0 {
		f.PC.Addr++
	}
	if ip != 0 {
		f.Code, _ = r.Lookup(f.PC.Lookup())
		r.Complete(&f.Code)
	}
	if f.Code.Method != arch.Addr(md) && !r.nameless(&f.Code, arch.Addr(md)) {
		f.Code = code.Code{Method: arch.Addr(md)} // its code is not at hand, or is another method's by now
	}
	return f, true
}

// nameless reports whether code is known by its image alone, because the dump lacks
// its MethodDesc, which is md. Code of images is never another method's later.
func (r *Runtime) nameless(c *code.Code, md arch.Addr) bool {
	if c.Kind != code.ReadyToRun || c.Method != 0 {
		return false
	}
	_, err := r.MethodAt(md)
	return err != nil
}
