package objfile

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// Pointer encodings of .eh_frame and .eh_frame_hdr (Linux Standard Base Core
// 5.0, section 10.5.1): the low four bits say the format, the next three what is
// added, the top one that the result is where the pointer lies.
const (
	PtrAbs      = 0x00
	PtrULEB     = 0x01
	PtrU2       = 0x02
	PtrU4       = 0x03
	PtrU8       = 0x04
	PtrSigned   = 0x08 // a word, sign-extended
	PtrSLEB     = 0x09
	PtrS2       = 0x0a
	PtrS4       = 0x0b
	PtrS8       = 0x0c
	PtrPCRel    = 0x10
	PtrTextRel  = 0x20
	PtrDataRel  = 0x30
	PtrFuncRel  = 0x40
	PtrAligned  = 0x50
	PtrIndirect = 0x80
	PtrOmit     = 0xff

	PtrBase   = 0x70 // the bits that say what is added
	ptrFormat = 0x0f
)

// PtrSize returns the bytes of a value of encoding enc, 0 when that varies or
// enc is no encoding. word is the size of a word of the CPU.
func PtrSize(enc uint8, word int) int {
	switch enc & ptrFormat {
	case PtrAbs, PtrSigned:
		return word
	case PtrU2, PtrS2:
		return 2
	case PtrU4, PtrS4:
		return 4
	case PtrU8, PtrS8:
		return 8
	}
	return 0
}

// PtrValue reads the number in the format of enc that b begins with, and adds
// nothing to it. n is how many bytes it has; ok is false when b ends before it,
// or enc is no encoding.
func PtrValue(b []byte, enc uint8, word int) (v uint64, n int, ok bool) {
	switch enc & ptrFormat {
	case PtrULEB:
		return bin.ULEB(b)
	case PtrSLEB:
		s, n, ok := bin.SLEB(b)
		return uint64(s), n, ok
	}
	n = PtrSize(enc, word)
	if n == 0 || n > len(b) {
		return 0, 0, false
	}
	switch n {
	case 2:
		v = uint64(le16(b))
	case 4:
		v = uint64(le32(b))
	default:
		v = le64(b)
	}
	switch enc & ptrFormat {
	case PtrS2:
		v = uint64(int16(v))
	case PtrS4:
		v = uint64(int32(v))
	}
	return v, n, true
}

// Bases are what pointers can be relative to. A base that is not known is 0,
// and a pointer that needs it is refused.
type Bases struct{ Text, Data, Func arch.Addr }

// Pointers decodes the encoded pointers of one image.
type Pointers struct {
	Mem  Reader // has the word of an indirect pointer
	Word int    // bytes of a word of the CPU: 4 or 8
	Span arch.Span
	Bias uint64
	// Relocated says that the dynamic linker may have relocated the pointers,
	// which are in mapped memory; pointers in a section of a file that is not
	// mapped it has not.
	Relocated bool
}

// Read decodes the pointer of encoding enc that b begins with; b lies at at. n is
// how many bytes it has. ok is false for one that cannot be read; missing is
// then the address of the word that an indirect pointer lacked, or 0.
func (p *Pointers) Read(b []byte, at arch.Addr, enc uint8, bases *Bases) (a arch.Addr, n int, missing arch.Addr, ok bool) {
	if enc == PtrOmit {
		return 0, 0, 0, true
	}
	pad := 0
	if enc&PtrBase == PtrAligned {
		pad = int(-at & arch.Addr(p.Word-1))
		if pad > len(b) {
			return 0, 0, 0, false
		}
		b, at, enc = b[pad:], at+arch.Addr(pad), enc&PtrIndirect
	}
	v, n, ok := PtrValue(b, enc, p.Word)
	n += pad
	// Zero means no pointer, whatever it is relative to.
	if !ok || v == 0 {
		return 0, n, 0, ok
	}
	var base arch.Addr
	switch enc & PtrBase {
	case PtrAbs:
		a = p.Absolute(v)
	case PtrPCRel:
		base = at
	case PtrTextRel:
		base = bases.Text
	case PtrDataRel:
		base = bases.Data
	case PtrFuncRel:
		base = bases.Func
	}
	if enc&PtrBase != PtrAbs {
		if base == 0 {
			return 0, n, 0, false
		}
		a = base + arch.Addr(v)
	}
	if enc&PtrIndirect != 0 {
		w, ok := u64(p.Mem, a)
		if !ok {
			return 0, n, a, false
		}
		a = p.Absolute(w)
	}
	return a, n, 0, true
}

// Absolute returns the address that an absolute pointer in the image's data
// means. The dynamic linker has relocated it in what a dump holds, and has not
// in what an image's file holds; only one of the two lies in the image.
func (p *Pointers) Absolute(v uint64) arch.Addr {
	if a := arch.Addr(v); p.Relocated && (p.Span.Has(a) || !p.Span.Has(a+arch.Addr(p.Bias))) {
		return a
	}
	return arch.Addr(v + p.Bias)
}
