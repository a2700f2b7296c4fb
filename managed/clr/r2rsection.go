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
	r2rClauses     = 104
	r2rDebugInfo   = 105
	r2rInstances   = 109
	r2rComponents  = 115
	r2rMVIDs       = 118
	maxR2RSection  = 256
)

// An r2rSection is where a section of a ReadyToRun image lies.
type r2rSection struct {
	rva, size uint32
	major     uint16 // version of the image
}

// imageSection finds a section by the header that lists it.
func (r *Runtime) imageSection(header arch.Addr, kind uint32) (s r2rSection, ok bool) {
	b := r.linked(header, r2rSections)
	// Where the version lies a descriptor may say, so it may lie anywhere.
	v := r.linked(field(header, r.names.R2RMajor), 2)
	if b == nil || v == nil || le32(b) != r2rSignature {
		return s, false
	}
	s.major = binary.LittleEndian.Uint16(v)
	s.rva, s.size, ok = r.listed(header+r2rSections, le32(b[r2rCount:]), kind)
	return s, ok
}

// listed finds a section in the list of n of them at a.
func (r *Runtime) listed(a arch.Addr, n, kind uint32) (rva, size uint32, ok bool) {
	for i := range arch.Addr(min(n, maxR2RSection)) {
		b := r.linked(a+i*r2rSectionLen, r2rSectionLen)
		if b == nil {
			return 0, 0, false
		}
		if le32(b) == kind {
			return le32(b[4:]), le32(b[8:]), true
		}
	}
	return 0, 0, false
}

// An r2rImage is what a ReadyToRunInfo leads to.
type r2rImage struct {
	module arch.Addr // of the image, or of the component of a composite one
	header arch.Addr // that lists its sections
	funcs  arch.Addr // its RUNTIME_FUNCTIONs
	count  uint32    // how many there are
	whole  arch.Addr // the ReadyToRunInfo of the composite image, or its own
}

// r2rImage reads the ReadyToRunInfo at info; not ok if the dump lacks a part of it.
func (r *Runtime) r2rImage(info arch.Addr) (x r2rImage, ok bool) {
	l := &r.codeLayout
	module, ok1 := r.word(info) // its first field
	header, ok2 := r.word(field(info, l.R2RHeader))
	funcs, ok3 := r.word(field(info, l.R2RFuncs))
	count, ok4 := r.u32(field(info, l.R2RNumFuncs))
	whole, ok5 := r.word(field(info, l.R2RComposite))
	x = r2rImage{arch.Addr(module), arch.Addr(header), arch.Addr(funcs), count, arch.Addr(whole)}
	return x, ok1 && ok2 && ok3 && ok4 && ok5
}

// wholeSection finds a section of the image that holds c: in a composite image
// the one of the whole, not of c's component.
func (r *Runtime) wholeSection(c *Code, kind uint32) (s r2rSection, ok bool) {
	l := &r.codeLayout
	info, ok := r.word(field(c.Header, l.R2RComposite))
	if !ok {
		return s, false
	}
	if info == 0 {
		info = uint64(c.Header)
	}
	header, ok := r.word(field(arch.Addr(info), l.R2RHeader))
	if !ok {
		return s, false
	}
	return r.imageSection(arch.Addr(header), kind)
}
