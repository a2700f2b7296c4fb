package clr

import "github.com/seamwalk/seam/arch"

// A Method is what the runtime and the metadata say of a MethodDesc.
type Method struct {
	ID    arch.Addr // the MethodDesc
	Token uint32    // 0x06xxxxxx; 0 for methods without metadata (IL stubs, dynamic methods)
	// Name is the metadata name, Namespace.Outer+Inner`1.Method, without
	// arguments. A dynamic method is dynamicClass.Name.
	Name string
	// TypeArgs and MethodArgs are the generic arguments, System.__Canon for
	// shared ones; Params the parameter types, as C# and ILSpy would print them.
	TypeArgs, MethodArgs, Params []string
	Module                       string // path of the module that defines it, or its name; "" if not known
	Dynamic                      bool   // IL stub or DynamicMethod
	ILStub                       bool
}

// Describe names a method. An error says which part could not be read; what
// could be is in the Method all the same.
func (r *Runtime) Describe(md arch.Addr) (Method, error) { return Method{ID: md}, nil }

// An Exception is an exception object in flight.
type Exception struct {
	Type    string // full name of its class
	Message string
	Address arch.Addr // of the object
	HResult uint32
}

// InFlight returns the exception that is being dispatched on t or whose
// handler runs, or nil.
func (r *Runtime) InFlight(t *Thread) *Exception { return nil }
