package unwind

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// ehFrame finds FDEs through .eh_frame_hdr, the sorted table that linkers make
// for C++ exceptions (LSB Core 5.0, section 10.6.2). It is searched where it
// lies. Where there is no usable table, .eh_frame is read once from end to end.
type ehFrame struct {
	cfi
	hdr    arch.Span // empty if there is none
	frames arch.Span // .eh_frame, as far as known
	noEnd  bool      // frames.Hi is only that of the image

	once  bin.Once
	table ehTable

	indexOnce  bin.Once
	index      index
	indexFault fault
}

// An ehTable is the decoded head of .eh_frame_hdr.
type ehTable struct {
	at    arch.Addr // of the first entry
	n     uint64    // entries
	enc   uint8
	size  int // bytes of one of the two values of an entry
	fault fault
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
	if t.hdr.Hi > t.hdr.Lo {
		t.table.fault = t.readHead()
	}
}

// findSlow finds an FDE by reading all of them, once.
func (t *ehFrame) findSlow(a arch.Addr) (arch.Addr, fault) {
	t.indexOnce.Do(func() {
		t.indexFault = t.table.fault // if there is nothing to index
		if t.frames.Hi > t.frames.Lo {
			t.indexFault = t.index.build(&t.cfi, t.frames, t.noEnd)
		}
	})
	if t.indexFault.reason != 0 {
		return noFDE, t.indexFault
	}
	return t.index.find(a), fault{}
}

// readHead leaves table.size 0 when there is no table to search.
func (t *ehFrame) readHead() fault {
	b := t.mem.View(t.hdr.Lo, 4)
	if b == nil {
		return fault{InfoMissing, arch.FirstMissing(t.mem, t.hdr.Lo, 4)}
	}
	version, ptrEnc, countEnc, enc := b[0], b[1], b[2], b[3]
	if version != 1 {
		return broken(t.hdr.Lo)
	}
	// Two values of at most ten bytes; sizes that vary are read bytewise.
	at := t.hdr.Lo + 4
	n := 20
	for n > 0 {
		if b = t.mem.View(at, n); b != nil {
			break
		}
		n--
	}
	c := cursor{b: b, at: at}
	rel := bases{text: t.base.text, data: t.hdr.Lo}
	frames, missing := t.pointer(&c, ptrEnc, rel)
	if missing != 0 {
		return fault{InfoMissing, missing}
	}
	count := uint64(0)
	if countEnc != peOmit {
		count = c.value(countEnc, t.arch.Word)
	}
	if c.bad {
		if n < 20 {
			return fault{InfoMissing, at + arch.Addr(n)}
		}
		return broken(t.hdr.Lo)
	}
	if t.frames.Hi <= t.frames.Lo && frames != 0 && t.span.Has(frames) {
		t.frames, t.noEnd = arch.Span{Lo: frames, Hi: t.span.Hi}, true
	}
	size := peSize(enc, t.arch.Word)
	if countEnc == peOmit || enc == peOmit || enc&peIndirect != 0 || size == 0 {
		return fault{}
	}
	// What the head claims must fit in the table.
	tab := c.here()
	if room := uint64(t.hdr.Hi - tab); tab > t.hdr.Hi || count > room/uint64(2*size) {
		return broken(t.hdr.Lo)
	}
	t.table = ehTable{at: tab, n: count, enc: enc, size: size}
	return fault{}
}

// entry returns one value of the table.
func (t *ehFrame) entry(i uint64, second bool) (a arch.Addr, f fault) {
	at := t.table.at + arch.Addr(i)*arch.Addr(2*t.table.size)
	if second {
		at += arch.Addr(t.table.size)
	}
	b := t.mem.View(at, t.table.size)
	if b == nil {
		return 0, fault{InfoMissing, arch.FirstMissing(t.mem, at, t.table.size)}
	}
	c := cursor{b: b, at: at}
	a, _ = t.pointer(&c, t.table.enc, bases{text: t.base.text, data: t.hdr.Lo})
	if c.bad {
		return 0, broken(at)
	}
	return a, fault{}
}

func (t *ehFrame) find(a arch.Addr, thorough bool) (arch.Addr, fault) {
	t.once.Do(t.open)
	if t.table.fault.reason == InfoMissing {
		return noFDE, t.table.fault
	}
	if t.table.size == 0 || thorough {
		return t.findSlow(a)
	}
	lo, hi := uint64(0), t.table.n // entries before lo begin at or before a
	low, high := arch.Addr(0), ^arch.Addr(0)
	if hi > 0 {
		low, _ = t.entry(0, false) // of the head's own page
	}
	for lo < hi {
		m := lo + (hi-lo)/2
		begin, f := t.entry(m, false)
		switch {
		case f.reason != 0:
			return noFDE, f
		case begin < low || begin > high:
			// Not in order, so not to be searched so: damage, which
			// could lead to the FDE of another function.
			return t.findSlow(a)
		case begin <= a:
			lo, low = m+1, begin
		default:
			hi, high = m, begin
		}
	}
	if lo == 0 {
		return noFDE, fault{}
	}
	at, f := t.entry(lo-1, true)
	if f.reason == 0 && at == 0 {
		f = broken(t.hdr.Lo)
	}
	return at, f
}
