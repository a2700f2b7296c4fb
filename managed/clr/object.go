package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

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
	if s = bin.UTF16(b); n > maxMessage {
		s += "…"
	}
	return s, true
}

// isString reports whether the object at a is a String. Where the dump lacks what
// tells, it is taken for one: the class of a field says so.
func (r *Runtime) isString(a arch.Addr) bool {
	at, ok := r.data.pointer("StringMethodTable")
	if !ok {
		return true
	}
	want, ok := r.word(at)
	mt, have := r.methodTable(a)
	return !ok || !have || arch.Addr(want) == mt
}

// fieldObject returns the object that the field at a refers to, 0 if that is null.
// It is not known where a byte is missing, or where there is no object.
func (r *Runtime) fieldObject(a arch.Addr) (obj arch.Addr, known bool) {
	v, ok := r.word(a)
	if !ok || v == 0 {
		return 0, ok
	}
	is, known := r.isObject(arch.Addr(v))
	if !is || !known {
		return 0, false
	}
	return arch.Addr(v), true
}

// An array is a one-dimensional array object.
type array struct {
	data  arch.Addr
	count uint32
	item  uint32 // bytes of an element
}

// arrayAt reads the head of the array at a; not ok if there is none, or if a byte
// of it is missing.
func (r *Runtime) arrayAt(a arch.Addr) (v array, ok bool) {
	mt, ok := r.methodTable(a)
	if !ok {
		return v, false
	}
	flags, ok1 := r.u32(field(mt, r.names.MTFlags))
	count, ok2 := r.u32(field(a, r.names.ArrayCount))
	if !ok1 || !ok2 || flags&mtComponentSize == 0 || flags&mtCategory != mtArray {
		return v, false
	}
	return array{field(a, r.names.ArrayHead), count, flags & 0xffff}, true
}
