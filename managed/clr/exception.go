package clr

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
)

// An Exception is an exception object in flight.
type Exception struct {
	Type    string    // full name of its class; "" if that cannot be read
	Message string    // "" if it has none of its own, or that cannot be read
	Address arch.Addr // of the object
	HResult uint32
}

// maxMessage bounds an exception's message, in UTF-16 units.
const maxMessage = 1 << 15

// InFlight returns the exception that is being dispatched on t or whose
// handler runs; nil if there is none. What cannot be read of it is left empty.
func (r *Runtime) InFlight(t *Thread) *Exception {
	if t.Exception == 0 {
		return nil
	}
	n := &r.names
	e := &Exception{}
	obj, ok := r.thrownOn(t.Exception)
	if !ok {
		return e
	}
	e.Address = obj
	if mt, ok := r.methodTable(obj); ok {
		if name, err := r.TypeName(mt); err == nil {
			e.Type = name
		}
	}
	e.HResult, _ = r.u32(field(obj, n.ExcHResult))
	if s, ok := r.word(field(obj, n.ExcMessage)); ok && s != 0 {
		e.Message = r.text(arch.Addr(s))
	}
	return e
}

// exInfoObject is where an ExInfo of .NET 9 and 10 holds the object that is
// being dispatched, which no descriptor gives. A dispatch sets it before it has
// a handle for it: seen in a thread that was stopped between the two.
const exInfoObject = 0xb0

// maxNested bounds the exceptions that nest in one another on one stack.
const maxNested = 1 << 10

// thrownOn finds the newest exception object of the ExInfo at a and those that
// it nests in. A rethrow that has just begun may not have one yet.
func (r *Runtime) thrownOn(a arch.Addr) (obj arch.Addr, ok bool) {
	for n := 0; a != 0 && n < maxNested; n++ {
		if obj, ok := r.thrown(field(a, r.names.ExcThrown)); ok {
			return obj, true
		}
		if v, ok := r.word(field(a, exInfoObject)); ok && v != 0 {
			if mt, ok := r.methodTable(arch.Addr(v)); ok && r.isMethodTable(mt) {
				return arch.Addr(v), true
			}
		}
		prev, ok := r.word(field(a, r.names.ExcPrev))
		if !ok {
			break
		}
		a = arch.Addr(prev)
	}
	return 0, false
}

// thrown finds the object that the word at a stands for. In .NET 8 to 10 it is
// a handle, the address of a word that the GC keeps up to date; later it is
// the object itself. An object's first word leads to a MethodTable, a
// handle's to an object.
func (r *Runtime) thrown(a arch.Addr) (obj arch.Addr, ok bool) {
	v, ok := r.word(a)
	if !ok || v == 0 {
		return 0, false
	}
	p, ok := r.word(arch.Addr(v))
	if !ok || p == 0 {
		return 0, false
	}
	if mt, ok := r.methodTable(arch.Addr(p)); ok && r.isMethodTable(mt) {
		return arch.Addr(p), true
	}
	if mt, ok := r.methodTable(arch.Addr(v)); ok && r.isMethodTable(mt) {
		return arch.Addr(v), true
	}
	return 0, false
}

// objectBits are what the GC may set in an object's first word while it works.
const objectBits = 7

// methodTable returns the MethodTable of an object.
func (r *Runtime) methodTable(obj arch.Addr) (mt arch.Addr, ok bool) {
	v, ok := r.word(field(obj, r.names.ObjectMT))
	return arch.Addr(v &^ objectBits), ok && v != 0
}

// isMethodTable reports whether mt is one: its class leads back to it, or to
// the canonical one that it shares the class with.
func (r *Runtime) isMethodTable(mt arch.Addr) bool {
	v, ok := r.word(field(mt, r.names.MTClass))
	if !ok {
		return false
	}
	if v&mtCanonBit != 0 {
		mt = arch.Addr(v &^ mtCanonBit)
	}
	class, err := r.class(mt)
	if err != nil {
		return false
	}
	back, ok := r.word(field(class, r.names.ClassMT))
	return ok && arch.Addr(back) == mt
}

// text reads the String object at a, as much of it as is allowed and there.
func (r *Runtime) text(a arch.Addr) string {
	n, ok := r.u32(field(a, r.names.StringSize))
	if !ok || n > 1<<30 {
		return ""
	}
	b := r.mem.View(field(a, r.names.StringText), 2*int(min(n, maxMessage)))
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}
