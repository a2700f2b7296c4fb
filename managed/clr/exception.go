package clr

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// maxMessage bounds an exception's message, in UTF-16 units.
const maxMessage = 1 << 15

// InFlight returns the exception that is being dispatched on t or whose
// handler runs; nil if there is none. What cannot be read of it is left empty.
func (r *Runtime) InFlight(t *code.Thread) *code.Exception {
	if t.Exception == 0 {
		return nil
	}
	n := &r.names
	e := &code.Exception{}
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
	e.HResult, e.HasHResult = r.u32(field(obj, n.ExcHResult))
	if s, ok := r.word(field(obj, n.ExcMessage)); ok && s != 0 {
		e.Message, e.HasMessage = r.text(arch.Addr(s))
	}
	return e
}

// maxNested bounds the exceptions that nest in one another on one stack.
const maxNested = 1 << 10

// thrownOn finds the newest exception object of the ExInfo at a and those that
// it nests in. A rethrow that has just begun may not have one yet. Where a byte
// is missing that could lead to a newer one, none is known.
func (r *Runtime) thrownOn(a arch.Addr) (obj arch.Addr, ok bool) {
	for n := 0; a != 0 && n < maxNested; n++ {
		obj, known := r.thrown(field(a, r.names.ExcThrown))
		if known && obj == 0 && r.names.ExcObject >= 0 {
			obj, known = r.objectAt(field(a, r.names.ExcObject))
		}
		if !known || obj != 0 {
			return obj, known
		}
		prev, ok := r.word(field(a, r.names.ExcPrev))
		if !ok {
			break
		}
		a = arch.Addr(prev)
	}
	return 0, false
}

// thrown finds the object that the word at a stands for, 0 if there is none. In
// .NET 8 to 10 it is a handle, the address of a word that the GC keeps up to
// date; later it is the object itself. An object's first word leads to a
// MethodTable, a handle's to an object. known is false if a byte is missing.
func (r *Runtime) thrown(a arch.Addr) (obj arch.Addr, known bool) {
	v, ok := r.word(a)
	if !ok || v == 0 {
		return 0, ok
	}
	obj, known = r.objectAt(arch.Addr(v))
	if obj != 0 {
		return obj, true
	}
	is, known2 := r.isObject(arch.Addr(v))
	if is {
		return arch.Addr(v), true
	}
	return 0, known && known2
}

// objectAt returns the object that the word at a points to, 0 if there is none.
func (r *Runtime) objectAt(a arch.Addr) (obj arch.Addr, known bool) {
	v, ok := r.word(a)
	if !ok || v == 0 {
		return 0, ok
	}
	is, known := r.isObject(arch.Addr(v))
	if !is {
		v = 0
	}
	return arch.Addr(v), known
}

// objectBits are what the GC may set in an object's first word while it works.
const objectBits = 7

// methodTable returns the MethodTable of an object.
func (r *Runtime) methodTable(obj arch.Addr) (mt arch.Addr, ok bool) {
	v, ok := r.word(field(obj, r.names.ObjectMT))
	return arch.Addr(v &^ objectBits), ok && v != 0
}

// isObject reports whether there is an object at a: its MethodTable's class leads
// back to that, or to the canonical one that it shares the class with.
func (r *Runtime) isObject(a arch.Addr) (is, known bool) {
	mt, ok := r.methodTable(a)
	if !ok {
		_, have := r.word(field(a, r.names.ObjectMT))
		return false, have
	}
	v, ok := r.word(field(mt, r.names.MTClass))
	if !ok {
		return false, false
	}
	if v&mtCanonBit != 0 {
		mt = arch.Addr(v &^ mtCanonBit)
	}
	class, err := r.class(mt)
	if err != nil {
		return false, false
	}
	back, ok := r.word(field(class, r.names.ClassMT))
	return ok && arch.Addr(back) == mt, ok
}

// text reads the String object at a; not ok if a part of it is missing.
func (r *Runtime) text(a arch.Addr) (s string, ok bool) {
	n, ok := r.u32(field(a, r.names.StringSize))
	if !ok || n > 1<<30 {
		return "", false
	}
	b := r.mem.View(field(a, r.names.StringText), 2*int(min(n, maxMessage)))
	if b == nil && n > 0 {
		return "", false
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	if s = string(utf16.Decode(u)); n > maxMessage {
		s += "…"
	}
	return s, true
}
