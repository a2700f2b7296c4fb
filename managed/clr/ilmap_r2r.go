package clr

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
)

// The header of a ReadyToRun image and of its sections
// (docs/design/coreclr/botr/readytorun-format.md).
const (
	r2rSignature   = 0x00525452 // "RTR"
	r2rCount       = 12         // number of sections
	r2rSections    = 16
	r2rSectionLen  = 12 // type, RVA, size
	r2rEntryPoints = 103
	r2rDebugInfo   = 105
	maxR2RSection  = 256
)

// r2rBounds finds the bounds of the method at RUNTIME_FUNCTION c.Index in its
// image's debug information: an array of the native format, by that index. In
// a composite image it belongs to the whole, as the functions do.
func (r *Runtime) r2rBounds(c Code) (at arch.Addr, n uint32, form boundsForm, ok bool) {
	l := &r.codeLayout
	info, ok := r.word(field(c.Header, l.R2RComposite))
	if !ok || info == 0 {
		info = uint64(c.Header)
	}
	header, ok := r.word(field(arch.Addr(info), l.R2RHeader))
	if !ok {
		return 0, 0, 0, false
	}
	section, major, ok := r.r2rSection(arch.Addr(header), r2rDebugInfo)
	if !ok {
		return 0, 0, 0, false
	}
	a := nativeArray{r: r, at: c.Base + arch.Addr(section)}
	elem, ok := a.find(c.Index)
	if !ok {
		return 0, 0, 0, false
	}
	// Equal information is kept once: an element is how far back it lies.
	back, next, ok := r.nativeNumber(elem)
	if !ok {
		return 0, 0, 0, false
	}
	if back != 0 {
		next = elem - arch.Addr(back)
	}
	s := nibbleReader{r: r, at: next}
	n = s.number()
	if n == 0 && major >= 17 {
		n = s.number()
		for range 5 {
			s.number()
		}
	} else {
		s.number() // variables
	}
	switch {
	case major < 16:
		form = boundsNibbles
	case major == 16:
		form = boundsBits2
	default:
		form = boundsBits3
	}
	return s.rest(), n, form, !s.bad
}

// r2rSection returns the RVA of a section and the image's major version.
func (r *Runtime) r2rSection(header arch.Addr, kind uint32) (rva uint32, major uint16, ok bool) {
	b := r.linked(header, r2rSections)
	// Where the version lies a descriptor may say, so it may lie anywhere.
	v := r.linked(field(header, r.names.R2RMajor), 2)
	if b == nil || v == nil || le32(b) != r2rSignature {
		return 0, 0, false
	}
	major = binary.LittleEndian.Uint16(v)
	for i := range arch.Addr(min(le32(b[r2rCount:]), maxR2RSection)) {
		s := r.linked(header+r2rSections+i*r2rSectionLen, r2rSectionLen)
		if s == nil {
			return 0, 0, false
		}
		if le32(s) == kind {
			return le32(s[4:]), major, true
		}
	}
	return 0, 0, false
}

// entryMethod returns the MethodDesc that has the code which an image was
// given for MethodDef row rid; 0 if there is none, or if that code was never
// asked for.
func (r *Runtime) entryMethod(s rangeSection, rid uint32) arch.Addr {
	l := &r.codeLayout
	info, ok1 := r.word(field(s.r2r, l.ModuleR2R))
	header, ok2 := r.word(field(arch.Addr(info), l.R2RHeader))
	funcs, ok3 := r.word(field(arch.Addr(info), l.R2RFuncs))
	count, ok4 := r.u32(field(arch.Addr(info), l.R2RNumFuncs))
	composite, ok5 := r.word(field(arch.Addr(info), l.R2RComposite))
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return 0
	}
	section, _, ok := r.r2rSection(arch.Addr(header), r2rEntryPoints)
	if !ok {
		return 0
	}
	i, ok := r.entryFunction(s.span.Lo+arch.Addr(section), rid)
	if !ok || i >= count {
		return 0
	}
	f, missing := r.function(arch.Addr(funcs), i)
	if missing != 0 {
		return 0
	}
	md, _ := r.hashLookup(field(arch.Addr(composite), l.R2REntries), uint64(s.span.Lo)+uint64(f.Begin))
	return arch.Addr(md)
}

// A nativeArray is a sparse array of the native format: a header, offsets of
// blocks of 16 elements, and in each block a tree over the index's four low
// bits (src/coreclr/vm/nativeformatreader.h).
type nativeArray struct {
	r  *Runtime
	at arch.Addr
}

const nativeBlock = 16

// find returns where element i lies; not ok if the array has none.
func (a nativeArray) find(i uint32) (arch.Addr, bool) {
	head, base, ok := a.r.nativeNumber(a.at)
	if !ok || i >= head>>2 {
		return 0, false
	}
	// The two low bits say how many bytes the offsets have.
	width := 1 << (head & 3)
	b := a.r.linked(base+arch.Addr(int(i/nativeBlock)*width), width)
	if b == nil || width > 4 {
		return 0, false
	}
	off := uint32(0)
	for k, c := range b {
		off |= uint32(c) << (8 * k)
	}
	at := base + arch.Addr(off)
	for bit := uint32(nativeBlock / 2); bit > 0; bit >>= 1 {
		v, next, ok := a.r.nativeNumber(at)
		if !ok {
			return 0, false
		}
		switch {
		case i&bit != 0 && v&2 != 0:
			at += arch.Addr(v >> 2)
		case i&bit == 0 && v&1 != 0:
			at = next
		case v&3 == 0 && v>>2 == i%nativeBlock:
			return next, true // the only element of its part of the tree
		default:
			return 0, false
		}
	}
	return at, true
}

// nativeNumber reads an unsigned number of the native format, whose first byte
// says by its low bits how many there are, and returns where the next begins.
func (r *Runtime) nativeNumber(a arch.Addr) (v uint32, next arch.Addr, ok bool) {
	c, ok := r.linkedByte(a)
	if !ok {
		return 0, a, false
	}
	n := 1
	for c>>(n-1)&1 != 0 {
		if n++; n > 5 {
			return 0, a, false
		}
	}
	b := r.linked(a, n)
	if b == nil {
		return 0, a, false
	}
	if n == 5 {
		return le32(b[1:]), a + 5, true
	}
	for k, c := range b {
		v |= uint32(c) << (8 * k)
	}
	return v >> n, a + arch.Addr(n), true
}
