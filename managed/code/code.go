package code

import "github.com/seamwalk/seam/arch"

// A Code says what lies at a pc of managed code. It is a value: looking code
// up allocates nothing.
type Code struct {
	Kind    Kind
	Stub    StubKind // of a Stub
	Funclet bool     // the pc lies in a handler (catch, finally, filter), a function of its own
	// FuncletKnown says that Funclet was found out. Where the dump lacks what
	// tells a handler from a body, both are false.
	FuncletKnown bool
	// Method is the identity of the method in its runtime: for CoreCLR the
	// address of the MethodDesc, the canonical one for shared code. It is 0 if
	// it is not known, or if the runtime has no such identities.
	Method arch.Addr
	Start  arch.Addr // first byte of the method's code; of the method, not of the funclet; 0 if not known
	Body   arch.Span // the body or the funclet that the pc lies in; Hi is 0 where its end is not known
}

// Managed reports whether c is code of a method, not a stub.
func (c *Code) Managed() bool { return c.Kind == JIT || c.Kind == ReadyToRun }

// A Kind says who made code.
type Kind uint8

const (
	NotManaged Kind = iota
	JIT             // compiled at run time
	ReadyToRun      // compiled ahead of time, in an image
	Stub            // a few instructions of the runtime's that lead to a method, or from one: see StubKind
)

var kinds = [...]string{NotManaged: "native", JIT: "jit", ReadyToRun: "r2r", Stub: "stub"}

func (k Kind) String() string { return kinds[k] }

// A StubKind says what a stub is for.
type StubKind uint8

// The kinds of stubs that CoreCLR makes (StubCodeBlockKind,
// src/coreclr/vm/codeman.h of .NET 10). StubUnknown is any other stub.
const (
	StubUnknown StubKind = iota
	StubJump
	StubPrecode
	StubFixupPrecode
	StubDynamicHelper
	StubDispatch
	StubResolve
	StubLookup
	StubVTable
	StubCallCounting
	StubDelayLoad
	numStubs
)

var stubNames = [numStubs]string{
	StubUnknown:       "stub",
	StubJump:          "JumpStub",
	StubPrecode:       "StubPrecode",
	StubFixupPrecode:  "FixupPrecode",
	StubDynamicHelper: "DynamicHelperStub",
	StubDispatch:      "VSD_DispatchStub",
	StubResolve:       "VSD_ResolveStub",
	StubLookup:        "VSD_LookupStub",
	StubVTable:        "VSD_VTableStub",
	StubCallCounting:  "CallCountingStub",
	StubDelayLoad:     "DelayLoadThunk",
}

func (k StubKind) String() string { return stubNames[k] }
