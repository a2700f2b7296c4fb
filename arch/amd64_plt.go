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
	add := func(e PLTEntry) {
		if n := len(list); n > 0 && list[n-1].End > e.At {
			list[n-1].End = e.At
		}
		list = append(list, e)
	}
	for i := 0; i < len(code); {
		b := code[i:]
		skip := func(s string) bool {
			ok := bytes.HasPrefix(b, []byte(s))
			if ok {
				b = b[len(s):]
			}
			return ok
		}
		u32 := func() (v uint32) {
			if len(b) >= 4 {
				v, b = binary.LittleEndian.Uint32(b), b[4:]
			} else {
				b = nil
			}
			return v
		}
		slot := func() LinkAddr {
			off := LinkAddr(int64(int32(u32())))
			return at + LinkAddr(len(code)-len(b)) + off
		}
		e := PLTEntry{At: at + LinkAddr(i), Index: -1}
		skip("\xf3\x0f\x1e\xfa")
		if skip("\x41\xbb") {
			u32()
		}
		bnd := skip("\xf2")
		switch {
		case skip("\xff\x25"):
			if e.Slot = slot(); skip("\x68") {
				u32()
				if skip("\xe9") {
					u32()
				}
			}
		case !bnd && skip("\x4c\x8b\x1d"):
			e.Slot = slot()
		case !bnd && skip("\x68"):
			e.Index = int(u32())
			if skip("\xf2"); !skip("\xe9") {
				e.Index = -1
			}
			u32()
		}
		next := (len(code) - len(b) + 7) &^ 7
		if next <= i {
			next = i + 8
		}
		if e.Slot != 0 || e.Index >= 0 {
			// What pads it, or is behind its jump, belongs to it up to the next.
			e.End = at + LinkAddr(min(max(next, i+16), len(code)))
			add(e)
		} else {
			next = i + 8
		}
		i = next
	}
	return list
}
