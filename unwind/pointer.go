package unwind

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// value reads a number in the format of the pointer encoding enc, and adds
// nothing to it.
func (c *cursor) value(enc uint8, word int) uint64 {
	if c.bad {
		return 0
	}
	v, n, ok := objfile.PtrValue(c.b[c.i:], enc, word)
	c.i += n
	c.bad = !ok
	return v
}

// pointer reads a pointer of encoding enc. It sets c.bad for one that cannot
// be read; missing is then the address of the word that an indirect pointer
// lacked, or 0.
func (t *cfi) pointer(c *cursor, enc uint8, b *objfile.Bases) (a, missing arch.Addr) {
	if c.bad {
		return 0, 0
	}
	a, n, missing, ok := t.ptrs.Read(c.b[c.i:], c.here(), enc, b)
	c.i += n
	c.bad = !ok
	return a, missing
}
