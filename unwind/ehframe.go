package unwind

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// ehFrame finds FDEs through .eh_frame_hdr, the sorted table that linkers make
// for C++ exceptions (LSB Core 5.0, section 10.6.2). It is searched where it
// lies. Where there is no usable table, .eh_frame is read once from end to end.
type ehFrame struct {
	cfi
	hdr    arch.Span // empty if there is none
	frames arch.Span // .eh_frame, as far as known
	end    sectionEnd

	once  bin.Once
	head  objfile.EhFrameHdr // of .eh_frame_hdr; without a table unless it can be searched
	fault fault              // why not, if it is there

	indexOnce  bin.Once
	index      index
	indexFault fault
}

func openEhFrame(u *Unwinder, img Image) Source {
	hdr, ok := img.Table(".eh_frame_hdr")
	frames, ok2 := img.Table(".eh_frame")
	if !ok && !ok2 {
		return nil
	}
	t := &ehFrame{hdr: hdr, frames: frames}
	u.cfi(&t.cfi, img)
	t.sect.mem = u.mem
	return t
}

func (t *ehFrame) Unwind(s *Step) Outcome { return t.unwind(t, s) }

// open decodes the head of the table.
func (t *ehFrame) open() {
	if t.hdr.Hi <= t.hdr.Lo {
		return
	}
	head, f := objfile.ReadEhFrameHdr(&t.ptrs, t.hdr, t.base.Text)
	t.head, t.fault = head, faultOf(f)
	if t.frames.Hi <= t.frames.Lo && head.Frames != 0 && t.span.Has(head.Frames) {
		t.frames, t.end = arch.Span{Lo: head.Frames, Hi: t.span.Hi}, atTerminator
	}
}

// faultOf returns what is wrong with a table, as a reason for a stop.
func faultOf(f objfile.Fault) fault {
	switch f.Kind {
	case objfile.Missing:
		return fault{InfoMissing, f.At}
	case objfile.Broken:
		return broken(f.At)
	}
	return fault{}
}

// findOfAll finds an FDE by reading all of them, once.
func (t *ehFrame) findOfAll(a arch.Addr) (arch.Addr, fault) {
	t.indexOnce.Do(func() {
		t.indexFault = t.fault // if there is nothing to index
		if t.frames.Hi > t.frames.Lo {
			t.indexFault = t.index.build(&t.cfi, t.frames, t.end)
		}
	})
	if t.indexFault.reason != 0 {
		return noFDE, t.indexFault
	}
	return t.index.find(a), fault{}
}

func (t *ehFrame) find(a arch.Addr) (arch.Addr, fault) {
	t.once.Do(t.open)
	if t.fault.reason == InfoMissing {
		return noFDE, t.fault
	}
	if t.head.Size == 0 {
		return t.findOfAll(a)
	}
	at, outcome, f := t.head.Find(a)
	switch outcome {
	case objfile.Found:
		return at, fault{}
	case objfile.NotFound:
		return noFDE, fault{}
	case objfile.Unordered:
		// Damage, which could lead to the FDE of another function.
		return t.findOfAll(a)
	}
	return noFDE, faultOf(f)
}
