package unwind

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A cursor reads little-endian data that may be cut short. After the first
// read past the end it returns zeros and bad is set, so that a record is read
// whole and bad asked once. It is a value that stays on the stack: a walk must
// not allocate, which rules out package bin's Reader here.
type cursor struct {
	b   []byte
	i   int
	bad bool
	at  arch.Addr // of b[0], for pointers relative to themselves
}

// here returns the address of the next byte.
func (c *cursor) here() arch.Addr { return c.at + arch.Addr(c.i) }

func (c *cursor) more() bool { return !c.bad && c.i < len(c.b) }

func (c *cursor) bytes(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)-c.i) {
		c.bad = true
		return nil
	}
	b := c.b[c.i : c.i+int(n)]
	c.i += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if !c.more() {
		c.bad = true
		return 0
	}
	c.i++
	return c.b[c.i-1]
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uint reads an unsigned number of 1, 2, 4 or 8 bytes.
func (c *cursor) uint(size int) uint64 {
	switch size {
	case 1:
		return uint64(c.u8())
	case 2:
		return uint64(c.u16())
	case 4:
		return uint64(c.u32())
	case 8:
		return c.u64()
	}
	c.bad = true
	return 0
}

// uleb reads an unsigned LEB128 number; see [bin.ULEB].
func (c *cursor) uleb() uint64 {
	if c.bad {
		return 0
	}
	v, n, ok := bin.ULEB(c.b[c.i:])
	c.i += n
	c.bad = !ok
	return v
}

// sleb reads a signed LEB128 number.
func (c *cursor) sleb() int64 {
	if c.bad {
		return 0
	}
	v, n, ok := bin.SLEB(c.b[c.i:])
	c.i += n
	c.bad = !ok
	return v
}
