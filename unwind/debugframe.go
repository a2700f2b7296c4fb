package unwind

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// debugFrame finds FDEs in .debug_frame, which is not loaded: it describes
// what was compiled without exceptions, and comes in the image's file or in a
// debug file. It has no sorted table.
type debugFrame struct {
	cfi
	once  bin.Once
	img   Image
	index index
	fault fault
}

func openDebugFrame(u *Unwinder, img Image) Source {
	t := &debugFrame{img: img}
	u.cfi(&t.cfi, img)
	t.debug, t.ptrs.Relocated = true, false
	return t
}

func (t *debugFrame) Unwind(s *Step) Outcome { return t.unwind(t, s) }

func (t *debugFrame) findOfAll(a arch.Addr) (arch.Addr, fault) { return t.find(a) }

func (t *debugFrame) find(a arch.Addr) (arch.Addr, fault) {
	t.once.Do(func() {
		t.sect.data = t.img.Section(".debug_frame")
		if len(t.sect.data) > 0 {
			t.fault = t.index.build(&t.cfi, arch.Span{Hi: arch.Addr(len(t.sect.data))}, atEnd)
		}
	})
	if t.fault.reason != 0 {
		return noFDE, t.fault
	}
	return t.index.find(a), fault{}
}
