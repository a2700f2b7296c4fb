package objfile

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
)

// An EhFrameHdr is the decoded head of .eh_frame_hdr, the sorted table that
// linkers make to find call frame information for C++ exceptions (LSB Core 5.0,
// section 10.6.2). The table is searched where it lies.
type EhFrameHdr struct {
	Frames  arch.Addr // of .eh_frame; 0 if the head does not say
	Entries arch.Addr // of the first entry
	Count   uint64    // of entries
	// Size is the size in bytes of each of the two values of an entry, where
	// code begins and its FDE; 0: there is no table that can be searched.
	Size int

	head arch.Addr
	enc  uint8
	text arch.Addr
	ptrs *Pointers
}

// A Fault says what is wrong with a table. The zero value says nothing is.
type Fault struct {
	Kind FaultKind
	At   arch.Addr // of the byte that is missing, or of what is broken
}

// A FaultKind tells what is missing from what is broken.
type FaultKind uint8

const (
	Sound   FaultKind = iota
	Missing           // bytes are not at hand
	Broken            // bytes are not what the format asks for
)

// maxPtrs is the most that the two pointers of the head can have, in bytes: ten
// each, if they are LEB128.
const maxPtrs = 20

// ReadEhFrameHdr decodes the head of the .eh_frame_hdr that lies at span. text
// is the base of pointers that are relative to .text, or 0. Frames is set if it
// could be read, also where the rest could not.
func ReadEhFrameHdr(p *Pointers, span arch.Span, text arch.Addr) (h EhFrameHdr, f Fault) {
	h = EhFrameHdr{head: span.Lo, text: text, ptrs: p}
	b := p.Mem.View(span.Lo, 4)
	if b == nil {
		return h, Fault{Missing, arch.FirstMissing(p.Mem, span.Lo, 4)}
	}
	version, framesEnc, countEnc, enc := b[0], b[1], b[2], b[3]
	if version != 1 {
		return h, Fault{Broken, span.Lo}
	}
	// The pointers can be shorter than the most that they can have, and nothing
	// need follow them.
	at, n := span.Lo+4, maxPtrs
	for n > 0 {
		if b = p.Mem.View(at, n); b != nil {
			break
		}
		n--
	}
	short := Fault{Broken, span.Lo}
	if n < maxPtrs {
		short = Fault{Missing, at + arch.Addr(n)}
	}
	frames, used, missing, ok := p.Read(b, at, framesEnc, h.bases())
	switch {
	case missing != 0:
		return h, Fault{Missing, missing}
	case !ok:
		return h, short
	}
	h.Frames = frames
	if countEnc == PtrOmit {
		return h, Fault{}
	}
	count, counted, ok := PtrValue(b[used:], countEnc, p.Word)
	if !ok {
		return h, short
	}
	size := PtrSize(enc, p.Word)
	if enc == PtrOmit || enc&PtrIndirect != 0 || size == 0 {
		return h, Fault{}
	}
	// What the head claims must fit in the table.
	entries := at + arch.Addr(used+counted)
	if entries > span.Hi || count > uint64(span.Hi-entries)/uint64(2*size) {
		return h, Fault{Broken, span.Lo}
	}
	h.Entries, h.Count, h.enc, h.Size = entries, count, enc, size
	return h, Fault{}
}

// bases are what the pointers of the table are relative to: data is the head.
func (h *EhFrameHdr) bases() *Bases { return &Bases{Text: h.text, Data: h.head} }

// value returns the value at a, of an entry.
func (h *EhFrameHdr) value(a arch.Addr) (arch.Addr, Fault) {
	b := h.ptrs.Mem.View(a, h.Size)
	if b == nil {
		return 0, Fault{Missing, arch.FirstMissing(h.ptrs.Mem, a, h.Size)}
	}
	bases := Bases{Text: h.text, Data: h.head}
	v, _, _, ok := h.ptrs.Read(b, a, h.enc, &bases)
	if !ok {
		return 0, Fault{Broken, a}
	}
	return v, Fault{}
}

// A Search is the outcome of [EhFrameHdr.Find].
type Search uint8

const (
	Found     Search = iota
	NotFound         // no entry begins at or before the address
	Unordered        // the entries that were read are not in order: the table is damaged, and not to be believed
	Failed           // see the Fault
)

// Find returns where the FDE lies of the last entry that begins at or before a.
// Size must not be 0.
func (h *EhFrameHdr) Find(a arch.Addr) (fde arch.Addr, s Search, f Fault) {
	step := arch.Addr(2 * h.Size)
	lo, hi := uint64(0), h.Count // entries before lo begin at or before a
	low, high := arch.Addr(0), ^arch.Addr(0)
	if hi > 0 {
		low, _ = h.value(h.Entries) // of the head's own page
	}
	for lo < hi {
		m := lo + (hi-lo)/2
		begin, f := h.value(h.Entries + arch.Addr(m)*step)
		switch {
		case f.Kind != Sound:
			return 0, Failed, f
		case begin < low || begin > high:
			return 0, Unordered, Fault{}
		case begin <= a:
			lo, low = m+1, begin
		default:
			hi, high = m, begin
		}
	}
	if lo == 0 {
		return 0, NotFound, Fault{}
	}
	fde, f = h.value(h.Entries + arch.Addr(lo-1)*step + arch.Addr(h.Size))
	if f.Kind == Sound && fde == 0 {
		f = Fault{Broken, h.head}
	}
	if f.Kind != Sound {
		return 0, Failed, f
	}
	return fde, Found, Fault{}
}

// EhFrameHdr returns where .eh_frame_hdr lies, of an ELF image that p describes
// and that has these program headers. It reads nothing.
func (p *Pointers) EhFrameHdr(progs []Prog) (arch.Span, bool) {
	for i := range progs {
		if progs[i].Type == elf.PT_GNU_EH_FRAME {
			return p.within(&progs[i])
		}
	}
	return arch.Span{}, false
}

// EhFrame returns where .eh_frame lies, which the head of .eh_frame_hdr says. The
// end is that of its segment: a zero length ends the table itself.
func (p *Pointers) EhFrame(progs []Prog) (arch.Span, bool) {
	hdr, ok := p.EhFrameHdr(progs)
	if !ok {
		return arch.Span{}, false
	}
	h, _ := ReadEhFrameHdr(p, hdr, 0)
	for i := range progs {
		if s, ok := p.within(&progs[i]); ok && progs[i].Type == elf.PT_LOAD && h.Frames != 0 && s.Has(h.Frames) {
			return arch.Span{Lo: h.Frames, Hi: s.Hi}, true
		}
	}
	return arch.Span{}, false
}

// within returns where a segment lies, if that is in the image.
func (p *Pointers) within(h *Prog) (arch.Span, bool) {
	lo := arch.Addr(p.Bias + h.Vaddr)
	s := arch.Span{Lo: lo, Hi: lo + arch.Addr(h.Memsz)}
	return s, h.Memsz > 0 && s.Lo < s.Hi && s.Lo >= p.Span.Lo && s.Hi <= p.Span.Hi
}
