package arch

import (
	"bytes"
	"encoding/binary"
)

// amd64PLT finds the entries of a table that begins at at. Linkers and options
// differ in what they put where (System V ABI, AMD64 supplement, section 5.2, and
// 13.2 for IBT; mold's own form; lld's with retpolines), but each entry begins at
// a multiple of 8 bytes and jumps through its slot first, or does not at all:
//
//	[endbr64] [mov r11d, n] [bnd] jmp [rip+slot]  [push n; jmp first]
//	[endbr64] push n; [bnd] jmp first
//	mov r11, [rip+slot]; call ...
//
// The first entry of a lazy table, which pushes a word of memory, is none.
func amd64PLT(code []byte, at LinkAddr) (list []PLTEntry) {
	for i := 0; i < len(code); {
		e, next := amd64PLTEntry(code, at, i)
		next = (next + 7) &^ 7
		if e.Slot == 0 && e.Index < 0 {
			i += 8
			continue
		}
		// What pads it, or is behind its jump, belongs to it up to the next.
		e.End = at + LinkAddr(min(max(next, i+16), len(code)))
		if n := len(list); n > 0 && list[n-1].End > e.At {
			list[n-1].End = e.At
		}
		list = append(list, e)
		i = max(next, i+8)
	}
	return list
}

// amd64PLTEntry matches the instructions at code[i] against the forms of an entry.
// Without Slot and Index they are none. next is the index of what lies behind them.
func amd64PLTEntry(code []byte, at LinkAddr, i int) (e PLTEntry, next int) {
	c := amd64PLTCode(code[i:])
	slot := func() LinkAddr { // relative to what follows it
		off := LinkAddr(int64(int32(c.u32())))
		return at + LinkAddr(len(code)-len(c)) + off
	}
	e = PLTEntry{At: at + LinkAddr(i), Index: -1}
	c.skip("\xf3\x0f\x1e\xfa") // endbr64
	if c.skip("\x41\xbb") {    // mov r11d, n
		c.u32()
	}
	bnd := c.skip("\xf2")
	switch {
	case c.skip("\xff\x25"): // jmp [rip+slot]
		if e.Slot = slot(); c.skip("\x68") { // push n
			c.u32()
			if c.skip("\xe9") { // jmp first
				c.u32()
			}
		}
	case !bnd && c.skip("\x4c\x8b\x1d"): // mov r11, [rip+slot]
		e.Slot = slot()
	case !bnd && c.skip("\x68"): // push n
		e.Index = int(c.u32())
		if c.skip("\xf2"); !c.skip("\xe9") { // jmp first
			e.Index = -1
		}
		c.u32()
	}
	return e, len(code) - len(c)
}

// An amd64PLTCode is what is left of a table's bytes.
type amd64PLTCode []byte

// skip passes over s if that comes next, and reports whether it does.
func (c *amd64PLTCode) skip(s string) bool {
	if !bytes.HasPrefix(*c, []byte(s)) {
		return false
	}
	*c = (*c)[len(s):]
	return true
}

// u32 passes over 4 bytes and returns them; where less are left it passes over
// those and returns 0.
func (c *amd64PLTCode) u32() (v uint32) {
	if len(*c) < 4 {
		*c = nil
		return 0
	}
	v = binary.LittleEndian.Uint32(*c)
	*c = (*c)[4:]
	return v
}
