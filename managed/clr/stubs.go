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

// stubBlock returns what the stubs of a block are for, whose kind has that number
// in this release.
func (r *Runtime) stubBlock(kind uint64) StubKind {
	if kind < uint64(len(r.release.stubs)) {
		return r.release.stubs[kind]
	}
	return StubUnknown
}

// stubListKind returns what the stubs of a section are for that has a
// CodeRangeMapRangeList. What is read there must be the number of a kind.
func (r *Runtime) stubListKind(s rangeSection) StubKind {
	if r.codeLayout.ListKind < 0 {
		return StubUnknown
	}
	v, ok := r.u32(field(s.list, r.codeLayout.ListKind))
	if !ok {
		return StubUnknown
	}
	return r.stubBlock(uint64(v))
}

// lookupStub answers for a section of precodes and the like.
func (r *Runtime) lookupStub(s rangeSection) (c Code, missing arch.Addr) {
	c.Kind, c.Base = Stub, s.span.Lo
	c.Stub = r.stubListKind(s)
	return c, 0
}
