package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// maxMessage bounds an exception's message, in UTF-16 units.
const maxMessage = 1 << 15

// exceptionLayout is what is read of exceptions besides what a replay needs.
type exceptionLayout struct {
	ExcInner int `c:"Exception._innerException"`
	ExcTrace int `c:"Exception._stackTrace"`
	ExcAll   int `c:"AggregateException._innerExceptions"`

	ArrayCount int `c:"Array.m_NumComponents"`
	ArrayHead  int `c:"Array.!"`

	TraceCount   int `c:"StackTraceArrayHeader.Size"`
	TraceHead    int `c:"StackTraceArrayHeader.!"`
	ElementSize  int `c:"StackTraceElement.!"`
	ElementIP    int `c:"StackTraceElement.Ip"`
	ElementSP    int `c:"StackTraceElement.sp"`
	ElementMD    int `c:"StackTraceElement.MethodDesc"`
	ElementFlags int `c:"StackTraceElement.Flags"`

	LastThrown    int `c:"Thread.LastThrownObject"`
	LastUnhandled int `c:"Thread.m_ltoIsUnhandled"`
}

// InFlight returns the exception that is being dispatched on t or whose
// handler runs; nil if there is none. What cannot be read of it is left empty.
func (r *Runtime) InFlight(t *code.Thread) *code.Exception {
	if t.Exception == 0 {
		return nil
	}
	obj, ok := r.thrownOn(t.Exception)
	if !ok {
		return &code.Exception{Lacks: code.LackParts}
	}
	return r.exceptionAt(obj)
}

// An exceptionReader reads an exception object and those that it leads to.
type exceptionReader struct {
	r *Runtime
	// read are those that have been read, and nil those that are being read: who
	// leads back to one of these stands in a cycle.
	read map[arch.Addr]*code.Exception
	left int // frames of stack traces that may still be read
}

// maxExceptions bounds the exceptions that one leads to.
const maxExceptions = 256

// exceptionAt reads the exception object at obj.
func (r *Runtime) exceptionAt(obj arch.Addr) *code.Exception {
	x := exceptionReader{r, map[arch.Addr]*code.Exception{}, maxTrace}
	return x.at(obj)
}

// at reads the exception at obj. It is nil if obj is one that is being read, or one
// too many.
func (x *exceptionReader) at(obj arch.Addr) *code.Exception {
	if e, ok := x.read[obj]; ok {
		return e
	}
	if len(x.read) == maxExceptions {
		return nil
	}
	x.read[obj] = nil
	r, n, e := x.r, &x.r.names, &code.Exception{Address: obj}
	mt, hasType := r.methodTable(obj)
	if hasType {
		if name, err := r.TypeName(mt); err == nil {
			e.Type = name
		}
	}
	e.HResult, e.HasHResult = r.u32(field(obj, n.ExcHResult))
	if s, ok := r.word(field(obj, n.ExcMessage)); ok && s != 0 && r.isString(arch.Addr(s)) {
		e.Message, e.HasMessage = r.text(arch.Addr(s))
	}
	inner, known := r.fieldObject(field(obj, n.ExcInner))
	if inner != 0 {
		e.Inner = x.at(inner)
	}
	if !known || inner != 0 && e.Inner == nil {
		e.Lacks |= code.LackInner
	}
	several, known := r.isClass(mt, aggregate)
	if hasType && known && several {
		known = x.list(e, inner)
	}
	if !hasType || !known {
		e.Lacks |= code.LackAll
	}
	if e.Trace, known = r.traceOf(obj, x.left); !known {
		e.Lacks |= code.LackTrace
	}
	x.left -= len(e.Trace)
	x.read[obj] = e
	return e
}

// aggregate is the class of exceptions that stand for several.
const aggregate = "System.AggregateException"

// list reads the exceptions that e stands for, and reports whether they are all
// of them. The first is e's inner one: a field where that is not so is not the list.
func (x *exceptionReader) list(e *code.Exception, inner arch.Addr) (whole bool) {
	r := x.r
	obj, known := r.fieldObject(field(e.Address, r.names.ExcAll))
	if obj == 0 {
		return known && inner == 0
	}
	v, ok := r.arrayAt(obj)
	if !ok || v.item != uint32(r.arch.Word) || v.count > maxExceptions {
		return false
	}
	whole = true
	for i := range v.count {
		obj, known := r.fieldObject(v.data + arch.Addr(i*v.item))
		if i == 0 && (!known || obj != inner) {
			return false
		}
		var one *code.Exception
		if obj != 0 {
			one = x.at(obj)
		}
		if one == nil {
			whole = false
			continue
		}
		e.All = append(e.All, one)
	}
	return whole
}

// maxParents bounds the classes that a class derives from.
const maxParents = 64

// isClass reports whether a class is the one of that name, or derives from it.
// known is false if a part of a name is missing on the way.
func (r *Runtime) isClass(mt arch.Addr, name string) (is, known bool) {
	for range maxParents {
		s, err := r.className(mt)
		if err != nil {
			return false, false
		}
		if s == name {
			return true, true
		}
		if slices.Contains(roots, s) {
			return false, true
		}
		parent, ok := r.word(field(mt, r.names.MTParent))
		if !ok || parent == 0 {
			return false, ok
		}
		mt = arch.Addr(parent)
	}
	return false, false
}

// roots are classes from which on there are no more exceptions.
var roots = []string{"System.Exception", "System.Object"}

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
