package nativeaot

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
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

	tableItem  = 0 // u16: the size of an item of an array or a String
	tableFlags = 2 // u16
	tableSize  = 4 // u32
	tableBase  = 8 // the class that it derives from

	tableHasItems = 0x8000 // of tableFlags: tableItem is one
)

const (
	maxNested  = 1 << 10 // exceptions that nest in one another on one stack
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
			return r.exception(arch.Addr(obj))
		}
		prev, ok2 := r.mem.Word(field(a, r.fields.Previous))
		if !ok || !ok2 {
			break
		}
		a = arch.Addr(prev)
	}
	return &code.Exception{Lacks: code.LackParts}
}

// exception reads the exception object at a.
func (r *Runtime) exception(a arch.Addr) *code.Exception {
	e := &code.Exception{Address: a, Lacks: code.LackParts}
	table, ok := r.table(a)
	if !ok {
		return e
	}
	e.Type = r.typeName(table)
	if !r.derives(table) {
		return e
	}
	e.HResult, e.HasHResult = r.u32(a + excHResult)
	if s, ok := r.mem.Word(a + excMessage); ok && s != 0 {
		e.Message, e.HasMessage = r.text(arch.Addr(s))
	}
	return e
}

// table returns the MethodTable of an object, which lies in the program.
func (r *Runtime) table(obj arch.Addr) (table arch.Addr, ok bool) {
	v, ok := r.mem.Word(obj + objectTable)
	table = arch.Addr(v &^ objectBits)
	return table, ok && r.span.Has(table)
}

// derives reports whether a MethodTable is one of a class that derives from
// System.Exception as its fields are known: the class below Object then has its
// size.
func (r *Runtime) derives(table arch.Addr) bool {
	size := uint32(0)
	for range maxDerived {
		base, ok := r.mem.Word(table + tableBase)
		if !ok {
			return false
		}
		if base == 0 { // table is Object
			return size == excSize
		}
		if size, ok = r.u32(table + tableSize); !ok {
			return false
		}
		table = arch.Addr(base)
	}
	return false
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
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	if s = string(utf16.Decode(u)); n > maxMessage {
		s += "…"
	}
	return s, ok
}

// tableSymbol is how the symbols of MethodTables begin: as those of C++ do.
const tableSymbol = "_ZTV"

// typeName returns what the symbol of a MethodTable says: the compiler's spelling
// of the class, S_P_CoreLib_System_Exception, out of which a namespace cannot be
// told from a class. It is "" where no symbol is at hand.
func (r *Runtime) typeName(table arch.Addr) string {
	s := strings.TrimPrefix(r.Image.DataSymbol(table, tableSymbol), tableSymbol)
	name := strings.TrimLeft(s, "0123456789")
	if n, err := strconv.Atoi(s[:len(s)-len(name)]); err == nil && n == len(name) {
		return name
	}
	return ""
}
