package ecma

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
)

// Element types of signatures (II.23.1.16), and those that CoreCLR adds for
// its own (src/coreclr/inc/corhdr.h): a signature that the runtime makes for a
// stub or a dynamic method names types by pointer.
const (
	elemVoid        = 0x01
	elemString      = 0x0e
	elemPtr         = 0x0f
	elemByRef       = 0x10
	elemValueType   = 0x11
	elemClass       = 0x12
	elemVar         = 0x13
	elemArray       = 0x14
	elemGenericInst = 0x15
	elemTypedByRef  = 0x16
	elemFnPtr       = 0x1b
	elemObject      = 0x1c
	elemSZArray     = 0x1d
	elemMVar        = 0x1e
	elemModReq      = 0x1f
	elemModOpt      = 0x20
	elemInternal    = 0x21
	elemModInternal = 0x22
	elemSentinel    = 0x41
	elemPinned      = 0x45
	callGeneric     = 0x10
	maxDepth        = 48
	maxNodes        = 2048
)

// simple names the element types that are whole types.
var simple = [...]string{
	elemVoid: "System.Void", 0x02: "System.Boolean", 0x03: "System.Char", 0x04: "System.SByte",
	0x05: "System.Byte", 0x06: "System.Int16", 0x07: "System.UInt16", 0x08: "System.Int32",
	0x09: "System.UInt32", 0x0a: "System.Int64", 0x0b: "System.UInt64", 0x0c: "System.Single",
	0x0d: "System.Double", elemString: "System.String", elemTypedByRef: "System.TypedReference",
	0x18: "System.IntPtr", 0x19: "System.UIntPtr", elemObject: "System.Object",
}

// SimpleName returns the name of the type that an element type is by itself, as
// System.Int32, or "".
func SimpleName(elem uint8) string {
	if int(elem) < len(simple) {
		return simple[elem]
	}
	return ""
}

// A Scope is what a signature's parts mean where it is used. Fields that are
// not set leave generic parameters as !0 and !!0, and refuse pointers.
type Scope struct {
	Type, Method Token  // whose generic parameters are meant, by name
	TypeArgs     []Type // what stands for the parameters of the type, instead
	// Handle names the type that a pointer of the runtime stands for.
	Handle func(p arch.Addr) (Type, error)

	readyToRun bool // element types that only ReadyToRun images have are allowed
}

// A MethodSig is a method's signature (II.23.2.1, II.23.2.2).
type MethodSig struct {
	Generic int // how many generic parameters the method itself has
	Return  Type
	Params  []Type
	Cut     bool // it ends before the last parameter does, so that Params are not all
}

// MethodSig decodes the signature of a method. What it could decode before an
// error is in the result.
func (m *Metadata) MethodSig(sig []byte, scope Scope) (MethodSig, error) {
	d := decoder{m: m, b: sig, scope: scope, nodes: maxNodes}
	s := d.method(0)
	return s, d.err
}

// A decoder reads one signature. Types that refer to each other through
// TypeSpec share its limits, or a few rows could ask for billions of types.
type decoder struct {
	m     *Metadata
	b     []byte
	scope Scope
	nodes int
	err   error // the first
	ended bool
	alien bool // tokens are those of a module that is not at hand
}

// note records that a name could not be read; the signature goes on.
func (d *decoder) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// fail ends the signature.
func (d *decoder) fail(err error) {
	d.note(err)
	d.b, d.ended = nil, true
}

// unknown stands for a type that could not be read.
var unknown = Type{Name: "?"}

func (d *decoder) byte() uint8 {
	if len(d.b) == 0 {
		d.fail(fmt.Errorf("a signature ends early"))
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) number() uint32 {
	v, n := Compressed(d.b)
	if n == 0 {
		d.fail(fmt.Errorf("a signature has a broken number"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) method(depth int) MethodSig {
	var s MethodSig
	call := d.byte()
	if call&callGeneric != 0 {
		s.Generic = int(d.number())
	}
	n := d.number()
	s.Return = d.typ(depth + 1)
	for range n {
		if d.ended {
			break
		}
		if len(d.b) > 0 && d.b[0] == elemSentinel {
			d.byte() // what follows are the arguments of a vararg call
		}
		if t := d.typ(depth + 1); !d.ended {
			s.Params = append(s.Params, t)
		}
	}
	s.Cut = d.ended
	return s
}

func (d *decoder) typ(depth int) Type {
	if d.nodes--; d.nodes < 0 || depth > maxDepth {
		d.fail(fmt.Errorf("a signature nests too deep or is too long"))
	}
	if d.ended {
		return unknown
	}
	switch e := d.byte(); e {
	case elemPtr:
		return Type{Shape: Pointer, Args: []Type{d.typ(depth + 1)}}
	case elemByRef:
		return Type{Shape: ByRef, Args: []Type{d.typ(depth + 1)}}
	case elemSZArray:
		return Type{Shape: Vector, Args: []Type{d.typ(depth + 1)}}
	case elemArray:
		return d.array(depth)
	case elemClass, elemValueType:
		return d.token(d.number(), depth)
	case elemGenericInst:
		return d.generic(depth)
	case elemVar:
		n := d.number()
		if uint64(n) < uint64(len(d.scope.TypeArgs)) {
			return d.scope.TypeArgs[n]
		}
		return d.param(d.scope.Type, "!", n)
	case elemMVar:
		return d.param(d.scope.Method, "!!", d.number())
	case elemFnPtr:
		s := d.method(depth)
		return Type{Shape: Function, Args: append([]Type{s.Return}, s.Params...)}
	case elemModReq, elemModOpt:
		d.number()
		return d.typ(depth + 1)
	case elemModInternal:
		d.byte() // required or not
		d.pointer()
		return d.typ(depth + 1)
	case elemPinned:
		return d.typ(depth + 1)
	case elemInternal:
		return d.internal()
	default:
		return d.whole(e, depth)
	}
}

// generic reads a type and its generic arguments.
func (d *decoder) generic(depth int) Type {
	t := d.typ(depth + 1)
	t.Args = slices.Clip(t.Args) // of a scope's type, which is shared, if it is a broken one
	for n := d.number(); n > 0 && !d.ended; n-- {
		t.Args = append(t.Args, d.typ(depth+1))
	}
	return t
}

// internal reads a type that the runtime names by pointer.
func (d *decoder) internal() Type {
	p := d.pointer()
	if d.ended || d.scope.Handle == nil {
		d.fail(fmt.Errorf("a signature names a type by pointer"))
		return unknown
	}
	t, err := d.scope.Handle(p)
	if err != nil {
		d.note(err)
		return unknown
	}
	return t
}

// whole returns the type that an element type is by itself, or reads what follows
// one that only ReadyToRun images have.
func (d *decoder) whole(elem uint8, depth int) Type {
	if n := SimpleName(elem); n != "" {
		return Type{Name: n}
	}
	if d.scope.readyToRun {
		switch elem {
		case elemZapCanon:
			return Type{Name: "System.__Canon"}
		case elemZapNativeValue:
			return d.typ(depth + 1)
		case elemZapModule:
			d.number()
			was := d.alien
			d.alien = true
			t := d.typ(depth + 1)
			d.alien = was
			return t
		}
	}
	d.fail(fmt.Errorf("a signature has an unknown element type %#x", elem))
	return unknown
}

// pointer reads an address as the runtime put it: 8 bytes, not compressed.
func (d *decoder) pointer() arch.Addr {
	if len(d.b) < 8 {
		d.fail(fmt.Errorf("a signature ends early"))
		return 0
	}
	p := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return arch.Addr(p)
}

// array reads an ArrayShape (II.23.2.13); sizes and bounds are not part of the name.
func (d *decoder) array(depth int) Type {
	t := Type{Shape: Array, Args: []Type{d.typ(depth + 1)}}
	t.Rank = int(d.number())
	for range 2 { // sizes, then lower bounds
		for n := d.number(); n > 0 && !d.ended; n-- {
			d.number()
		}
	}
	return t
}

// token names the type of a TypeDefOrRefOrSpecEncoded (II.23.2.8).
func (d *decoder) token(v uint32, depth int) Type {
	t, rid := decode(typeDefOrRef, v)
	if d.ended || d.alien {
		return unknown
	}
	if t == TypeSpec {
		return d.spec(rid, depth)
	}
	name, err := d.m.TypeName(Token(uint32(t)<<24 | rid))
	if err != nil {
		d.note(err)
		return unknown
	}
	return Type{Name: name}
}

// spec decodes the signature that a TypeSpec row stands for.
func (d *decoder) spec(rid uint32, depth int) Type {
	r, err := d.m.row(TypeSpec, rid)
	if err != nil {
		d.note(err)
		return unknown
	}
	b, err := d.m.blob(r.col(0))
	if err != nil {
		d.note(err)
		return unknown
	}
	rest := d.b
	d.b = b
	t := d.typ(depth + 1)
	if !d.ended {
		d.b = rest
	}
	return t
}

// param names generic parameter n of owner.
func (d *decoder) param(owner Token, mark string, n uint32) Type {
	if owner.Row() != 0 {
		name, err := d.m.GenericParam(owner, n)
		if name != "" {
			return Type{Name: name}
		}
		if err != nil {
			d.note(err)
		}
	}
	return Type{Name: fmt.Sprint(mark, n)}
}
