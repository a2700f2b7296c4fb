package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// stubBlock returns what the stubs of a block are for, whose kind has that number
// in this release.
func (r *Runtime) stubBlock(kind uint64) code.StubKind {
	if kind < uint64(len(r.release.stubs)) {
		return r.release.stubs[kind]
	}
	return code.StubUnknown
}

// stubListKind returns what the stubs of a section are for that has a
// CodeRangeMapRangeList. What is read there must be the number of a kind.
func (r *Runtime) stubListKind(s rangeSection) code.StubKind {
	if r.codeLayout.ListKind < 0 {
		return code.StubUnknown
	}
	v, ok := r.u32(field(s.list, r.codeLayout.ListKind))
	if !ok {
		return code.StubUnknown
	}
	return r.stubBlock(uint64(v))
}

// lookupStub answers for a section of precodes and the like.
func (r *Runtime) lookupStub(s rangeSection) (c Code, missing arch.Addr) {
	c.Kind, c.Base = code.Stub, s.span.Lo
	c.Stub = r.stubListKind(s)
	return c, 0
}
