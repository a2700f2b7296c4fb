package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestStubSections reads the kind of a section of stubs: a number that no kind has,
// and one that is missing, are stubs of a kind that is not known.
func TestStubSections(t *testing.T) {
	const list = arch.Addr(0x6000_0000)
	for number, want := range map[uint64]code.StubKind{2: code.StubPrecode, 5: code.StubFixupPrecode, 10: code.StubCallCounting, 0: code.StubUnknown, 11: code.StubUnknown, 0xffffffff: code.StubUnknown} {
		m := fakeMemory{}
		m.put(list+0x120, number, 4)
		r := fakeRuntime(t, m.core(t))
		if c, missing := r.lookupStub(rangeSection{list: list}); c.Kind != code.Stub || c.Stub != want || missing != 0 {
			t.Errorf("number %d: %+v", number, c)
		}
		if c, _ := r.lookupStub(rangeSection{list: list + 0x1000}); c.Kind != code.Stub || c.Stub != code.StubUnknown {
			t.Errorf("without the number: %+v", c)
		}
	}
}

// TestRecordedStubs: the runtime's map of code has sections of precodes of both
// kinds, and of call-counting stubs where methods are counted. A FixupPrecode's
// data lead to code or to the stub that makes it.
func TestRecordedStubs(t *testing.T) {
	for _, path := range corpus.Dumps(t, `^net(8|9|10)-(scenarios|r2r|hello)-(x64|arm64)`) {
		p, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, _ := Open(p)
		for _, r := range rts {
			kinds := map[code.StubKind]int{}
			r.sections(func(s rangeSection) bool {
				if s.flags&rangeList != 0 && s.r2r == 0 {
					kinds[r.stubListKind(s)]++
				}
				return true
			})
			if kinds[code.StubPrecode] == 0 || kinds[code.StubFixupPrecode] == 0 {
				t.Errorf("%s: sections of stubs: %v", path, kinds)
			}
		}
	}
}
