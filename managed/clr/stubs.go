package clr

import "github.com/seamwalk/seam/arch"

// A StubKind says what a stub is for.
type StubKind uint8

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

// stubBlocks is StubCodeBlockKind (src/coreclr/vm/codeman.h of .NET 10).
var stubBlocks = [...]StubKind{
	1: StubJump, 2: StubPrecode, 3: StubDynamicHelper, 4: StubPrecode, 5: StubFixupPrecode,
	6: StubDispatch, 7: StubResolve, 8: StubLookup, 9: StubVTable, 10: StubCallCounting,
}

func stubBlock(kind uint64) StubKind {
	if kind < uint64(len(stubBlocks)) {
		return stubBlocks[kind]
	}
	return StubUnknown
}

// stubListKind is where a CodeRangeMapRangeList keeps the kind of its stubs
// (LockedRangeList and its lock come first): seen so in .NET 9 and 10 on Linux.
const stubListKind = 0x120

// lookupStub answers for a section of precodes and the like.
func (r *Runtime) lookupStub(s rangeSection) (c Code, missing arch.Addr) {
	c.Kind, c.Base = Stub, s.span.Lo
	if v, ok := r.u32(s.list + stubListKind); ok {
		c.Stub = stubBlock(uint64(v))
	}
	return c, 0
}
