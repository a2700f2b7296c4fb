package code

import (
	"errors"

	"github.com/seamwalk/seam/arch"
)

// A Method is what a runtime says of a method. Its slices are shared and not to
// be written to.
type Method struct {
	ID    arch.Addr // its identity in the runtime, see Code.Method; 0 if not known
	Token uint32    // in the metadata of Module, 0x06xxxxxx; 0 for methods without metadata (IL stubs, dynamic methods, those of arrays)
	// Name is the metadata name, Namespace.Outer+Inner`1.Method, without
	// arguments. A dynamic method is dynamicClass.Name.
	Name string
	// Verbatim: Name is to be shown as it is, because the runtime has only a
	// text for the method, as in a perf map. Lists of arguments are empty then.
	Verbatim bool
	// TypeArgs and MethodArgs are the generic arguments, System.__Canon for
	// shared ones; Params the parameter types, generic parameters by name.
	// All are as C# prints them, with namespaces: ref int, System.Guid[]. One
	// that could not be read is "?".
	TypeArgs, MethodArgs, Params []string
	// Unknown has the lists of which not even the length could be read. Those
	// are empty, which does not mean that the method has none.
	Unknown Parts
	Module  string // path of the module that defines it, or its name; "" if not known
	// ModuleBase is where that module's image lies, a PE file, mapped or only in
	// memory; 0 if it has none, as emitted ones, or if that is not known.
	ModuleBase arch.Addr
	Dynamic    bool // IL stub or DynamicMethod
	ILStub     bool
}

// Parts are lists of a Method, as a set.
type Parts uint8

const (
	PartTypeArgs Parts = 1 << iota
	PartMethodArgs
	PartParams
)

// ErrNoMethod is the error of describing code of which it is not known which
// method it belongs to.
var ErrNoMethod = errors.New("it is not known which method this code belongs to")

// A Compiled is one piece of code that a runtime made while the process ran.
type Compiled struct {
	Span arch.Span // from its first byte to its last, funclets included
	// ID is the identity of the method, see Code.Method; 0 for stubs, and where
	// the runtime has no such identities.
	ID     arch.Addr
	Name   string // "" where it is left to Describe, which may cost more than the whole list
	Source string // where the list comes from, as "clr"
	Kind   CompiledKind
	Stub   StubKind // of CompiledStub
}

// Code is what [Runtime.Describe] needs in order to name m.
func (m *Compiled) Code() Code {
	c := Code{Kind: JIT, Method: m.ID, Start: m.Span.Lo, Body: m.Span}
	if m.Kind == CompiledStub {
		c.Kind, c.Stub = Stub, m.Stub
	}
	return c
}

// A CompiledKind says what was compiled.
type CompiledKind uint8

const (
	CompiledMethod  CompiledKind = iota
	CompiledDynamic              // a method without metadata: an IL stub or a DynamicMethod
	CompiledStub                 // a block of stubs
)

var compiledKinds = [...]string{CompiledMethod: "jit", CompiledDynamic: "dynamic", CompiledStub: "stub"}

func (k CompiledKind) String() string { return compiledKinds[k] }
