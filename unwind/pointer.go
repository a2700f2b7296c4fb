package unwind

import "github.com/seamwalk/seam/arch"

// Pointer encodings (Linux Standard Base Core 5.0, section 10.5.1): the low
// four bits say the format, the next three what is added, the top one that
// the result is where the pointer lies.
const (
	peAbsptr   = 0x00
	peUleb     = 0x01
	peUdata2   = 0x02
	peUdata4   = 0x03
	peUdata8   = 0x04
	peSigned   = 0x08 // a word, sign-extended
	peSleb     = 0x09
	peSdata2   = 0x0a
	peSdata4   = 0x0b
	peSdata8   = 0x0c
	pePcrel    = 0x10
	peTextrel  = 0x20
	peDatarel  = 0x30
	peFuncrel  = 0x40
	peAligned  = 0x50
	peIndirect = 0x80
	peOmit     = 0xff
)

// bases are what pointers can be relative to. One that is not known is 0, and
// a pointer that needs it is refused.
type bases struct{ text, data, fn arch.Addr }

// peSize returns the bytes of a value of encoding enc, 0 when that varies or
// enc is no encoding.
func peSize(enc uint8, word int) int {
	switch enc & 0x0f {
	case peAbsptr, peSigned:
		return word
	case peUdata2, peSdata2:
		return 2
	case peUdata4, peSdata4:
		return 4
	case peUdata8, peSdata8:
		return 8
	}
	return 0
}

// value reads a number in the format of enc, and adds nothing.
func (c *cursor) value(enc uint8, word int) uint64 {
	switch enc & 0x0f {
	case peUleb:
		return c.uleb()
	case peSleb:
		return uint64(c.sleb())
	}
	v := c.uint(peSize(enc, word)) // a size of 0 makes c bad
	switch enc & 0x0f {
	case peSdata2:
		v = uint64(int16(v))
	case peSdata4:
		v = uint64(int32(v))
	}
	return v
}

// pointer reads a pointer of encoding enc. It sets c.bad for one that cannot
// be read; missing is then the address of the word that an indirect pointer
// lacked, or 0.
func (t *cfi) pointer(c *cursor, enc uint8, b bases) (a, missing arch.Addr) {
	if enc == peOmit {
		return 0, 0
	}
	word := t.arch.Word
	if enc&0x70 == peAligned {
		c.bytes(uint64(-c.here()) & uint64(word-1))
		enc = enc & peIndirect
	}
	at := c.here()
	v := c.value(enc, word)
	if c.bad {
		return 0, 0
	}
	// Zero means no pointer, whatever it is relative to.
	if v == 0 {
		return 0, 0
	}
	var base arch.Addr
	switch enc & 0x70 {
	case peAbsptr:
		a = t.absolute(v)
	case pePcrel:
		base = at
	case peTextrel:
		base = b.text
	case peDatarel:
		base = b.data
	case peFuncrel:
		base = b.fn
	}
	if enc&0x70 != peAbsptr {
		if base == 0 {
			c.bad = true
			return 0, 0
		}
		a = base + arch.Addr(v)
	}
	if enc&peIndirect != 0 {
		w, ok := t.mem.Word(a)
		if !ok {
			c.bad = true
			return 0, a
		}
		a = t.absolute(w)
	}
	return a, 0
}

// absolute returns the address that a pointer in the image's data means. The
// dynamic loader has relocated it in what the dump holds, and has not in what
// an image file holds; only one of the two lies in the image.
func (t *cfi) absolute(v uint64) arch.Addr {
	if a := arch.Addr(v); t.sect.data == nil && (t.span.Has(a) || !t.span.Has(a+arch.Addr(t.bias))) {
		return a
	}
	return arch.Addr(v + t.bias)
}
