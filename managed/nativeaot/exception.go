package nativeaot

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/managed/code"
)

// Where objects have their fields, in bytes. A String and an array begin alike. Of
// System.Exception the compiler puts references first, in the order of the source
// (Exception.NativeAot.cs of .NET 8 to 10); that holds if the class has the size
// that they make.
const (
	objectTable = 0 // the MethodTable; the GC uses the low bits
	objectBits  = 7

	arrayLength = 8
	arrayItems  = 16
	stringText  = 12

	excMessage = 8
	excInner   = 24
	excTrace   = 64 // an array of return addresses
	excHResult = 72
	excDepth   = 76 // how many of them count
	excSize    = 88 // of the class, with the word in front of an object
	excAll     = 80 // of an AggregateException: an array of exceptions

	tableItem  = 0 // u16: the size of an item of an array or a String
	tableFlags = 2 // u16
	tableSize  = 4 // u32
	tableBase  = 8 // the class that it derives from

	tableHasItems = 0x8000 // of tableFlags: tableItem is one
)

const (
	maxNested  = 1 << 10 // exceptions that nest in one another on one stack
	maxRead    = 1 << 10 // exceptions that lead to one another
	maxTrace   = 1 << 17 // frames of the stack traces of exceptions that lead to one another, together
	maxDerived = 64      // classes that derive from one another
	maxMessage = 1 << 15 // UTF-16 units
)

// InFlight returns the exception that is being dispatched on t or whose handler
// runs; nil if there is none. What cannot be read of it is left empty.
func (r *Runtime) InFlight(t *code.Thread) *code.Exception {
	if t.Exception == 0 {
		return nil
	}
	// A rethrow that has just begun has no object yet.
	for a, n := t.Exception, 0; a != 0 && n < maxNested; n++ {
		obj, ok := r.mem.Word(field(a, r.fields.Object))
		if ok && obj != 0 {
			x := reader{r, map[arch.Addr]*code.Exception{}, maxTrace}
			return x.exception(arch.Addr(obj))
		}
		prev, ok2 := r.mem.Word(field(a, r.fields.Previous))
		if !ok || !ok2 {
			break
		}
		a = arch.Addr(prev)
	}
	return &code.Exception{Lacks: code.LackParts}
}

// A reader reads an exception and those that it leads to, each once.
type reader struct {
	*Runtime
	read map[arch.Addr]*code.Exception
	left uint32 // frames of stack traces that may still be read
}

// exception reads the exception object at a; nil if it is being read, or if it is
// one too many.
func (x *reader) exception(a arch.Addr) *code.Exception {
	if e, ok := x.read[a]; ok || len(x.read) == maxRead {
		return e
	}
	x.read[a] = nil
	e := &code.Exception{Address: a, Lacks: code.LackParts}
	if table, ok := x.table(a); ok {
		exception, object, derives := x.root(table)
		e.Type = x.typeName(table, exception, object)
		if derives {
			x.parts(e)
		}
	}
	x.read[a] = e
	return e
}

// parts reads what e's object has of any exception.
func (x *reader) parts(e *code.Exception) {
	a := e.Address
	e.HResult, e.HasHResult = x.u32(a + excHResult)
	if s, ok := x.mem.Word(a + excMessage); ok && s != 0 {
		e.Message, e.HasMessage = x.text(arch.Addr(s))
	}
	if inner, ok := x.mem.Word(a + excInner); ok {
		if inner != 0 {
			e.Inner = x.exception(arch.Addr(inner))
		}
		if inner == 0 || e.Inner != nil {
			e.Lacks &^= code.LackInner
		}
		several := e.Type == aggregate || e.Type == aggregateSymbol
		if e.Type != "" && (!several || x.list(e, inner)) {
			e.Lacks &^= code.LackAll
		}
	}
	if x.trace(e) {
		e.Lacks &^= code.LackTrace
	}
}

// The class of exceptions that stand for several.
const (
	aggregate       = "System.AggregateException"
	aggregateSymbol = "S_P_CoreLib_System_AggregateException"
)

// list reads the exceptions that e stands for, the first of which is inner, and
// reports whether they are all of them.
func (x *reader) list(e *code.Exception, inner uint64) bool {
	array, ok := x.mem.Word(e.Address + excAll)
	if !ok {
		return false
	}
	b, n, ok := x.items(arch.Addr(array), 8, arrayItems, maxRead)
	if !ok || n > maxRead || n > 0 && binary.LittleEndian.Uint64(b) != inner {
		return false
	}
	for ; len(b) > 0; b = b[8:] {
		one := x.exception(arch.Addr(binary.LittleEndian.Uint64(b)))
		if one == nil {
			return false
		}
		e.All = append(e.All, one)
	}
	return true
}

// separator stands in a stack trace where the exception was thrown anew
// (Exception.EdiSeparator).
const separator = 1

// trace reads the stack trace that e's object has, and reports whether that is all
// of it. An exception that was never thrown has none.
func (x *reader) trace(e *code.Exception) bool {
	depth, ok1 := x.u32(e.Address + excDepth)
	array, ok2 := x.mem.Word(e.Address + excTrace)
	if !ok1 || !ok2 || depth == 0 || array == 0 {
		return ok1 && ok2 && depth == 0
	}
	b, n, ok := x.items(arch.Addr(array), 8, arrayItems, min(depth, x.left))
	if !ok || n < depth {
		return false
	}
	x.left -= uint32(len(b) / 8)
	whole := uint32(len(b)/8) == depth
	for ; len(b) > 0; b = b[8:] {
		pc := arch.Addr(binary.LittleEndian.Uint64(b))
		switch {
		case pc == separator && len(e.Trace) > 0:
			e.Trace[len(e.Trace)-1].Rethrown = true
		case !x.span.Has(pc):
			return false
		default:
			e.Trace = append(e.Trace, code.TraceFrame{PC: arch.PC{Addr: pc, Exact: x.faulted(pc)}, Native: true})
		}
	}
	return whole
}

// faulted reports whether pc, of a stack trace, is where a fault was: what is in
// front of it is no call. It is not where the bytes in front are not at hand.
func (x *reader) faulted(pc arch.Addr) bool {
	const longest = 8 // bytes of a call
	return x.mem.View(pc-longest, longest) != nil && !x.cpu.AfterCall(x.mem, pc)
}

// table returns the MethodTable of an object, which lies in the program.
func (r *Runtime) table(obj arch.Addr) (table arch.Addr, ok bool) {
	v, ok := r.mem.Word(obj + objectTable)
	table = arch.Addr(v &^ objectBits)
	return table, ok && r.span.Has(table)
}

// root returns the MethodTable of System.Exception, which the class of table derives
// from, and that of System.Object; not ok if the class below Object has another size
// than System.Exception has with its fields as they are known.
func (r *Runtime) root(table arch.Addr) (exception, object arch.Addr, ok bool) {
	size := uint32(0)
	for range maxDerived {
		base, ok := r.mem.Word(table + tableBase)
		if !ok {
			break
		}
		if base == 0 {
			return exception, table, size == excSize
		}
		if size, ok = r.u32(table + tableSize); !ok {
			break
		}
		exception, table = table, arch.Addr(base)
	}
	return 0, 0, false
}

// items returns the items of the array or String at a, of which each has size
// bytes and the first lies at off: at most limit, and how many there are; not ok
// if they are not at hand.
func (r *Runtime) items(a arch.Addr, size uint16, off arch.Addr, limit uint32) (b []byte, n uint32, ok bool) {
	table, ok := r.table(a)
	if !ok {
		return nil, 0, false
	}
	head := r.mem.View(table, 4)
	n, ok = r.u32(a + arrayLength)
	if !ok || head == nil || binary.LittleEndian.Uint16(head[tableItem:]) != size ||
		binary.LittleEndian.Uint16(head[tableFlags:])&tableHasItems == 0 {
		return nil, 0, false
	}
	if k := int(min(n, limit)) * int(size); k > 0 {
		b = r.mem.View(a+off, k)
		ok = b != nil
	}
	return b, n, ok
}

// text reads the String object at a; not ok if a part of it is missing.
func (r *Runtime) text(a arch.Addr) (s string, ok bool) {
	b, n, ok := r.items(a, 2, stringText, maxMessage)
	if !ok {
		return "", false
	}
	if s = bin.UTF16(b); n > maxMessage {
		s += "…"
	}
	return s, true
}

// tableSymbol is how the symbols of MethodTables begin: as those of C++ do.
const tableSymbol = "_ZTV"

// typeName returns the name of the class of an exception, which derives from the
// classes that root returns: by the program's metadata, else what the symbol of its
// MethodTable says, the compiler's spelling (S_P_CoreLib_System_Exception), out of
// which a namespace cannot be told from a class. It is "" where neither is at hand.
func (r *Runtime) typeName(table, exception, object arch.Addr) string {
	if exception != 0 && r.metadataName(exception) == "System.Exception" && r.metadataName(object) == "System.Object" {
		if name := r.metadataName(table); name != "" {
			return name
		}
	}
	s := strings.TrimPrefix(r.Image.DataSymbol(table, tableSymbol), tableSymbol)
	name := strings.TrimLeft(s, "0123456789")
	if n, err := strconv.Atoi(s[:len(s)-len(name)]); err == nil && n == len(name) {
		return name
	}
	return ""
}
