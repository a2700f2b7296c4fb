package arch

import "encoding/binary"

// arm64PLT finds the entries of a table that begins at at: adrp and ldr of the
// slot, and a br not far behind (ELF for the Arm 64-bit Architecture, and its
// appendix on PAC and BTI). With BTI a landing pad comes first, with PAC the
// target is authenticated: entries have 16 or 24 bytes. The first entry of a lazy
// table has the same instructions behind a store, and is none.
func arm64PLT(code []byte, at LinkAddr) (list []PLTEntry) {
	word := func(i int) uint32 {
		if i < 0 || i+4 > len(code) {
			return 0
		}
		return binary.LittleEndian.Uint32(code[i:])
	}
	const (
		btiC   = 0xd503245f
		nop    = 0xd503201f
		header = 0xa9bf7bf0 // stp x16, x30, [sp, #-16]!
	)
	for i := 0; i+8 <= len(code); i += 4 {
		adrp, ldr := word(i), word(i+4)
		reg := adrp & 31
		if adrp&0x9f000000 != 0x90000000 || ldr&0xffc00000 != 0xf9400000 || ldr>>5&31 != reg || word(i-4) == header {
			continue
		}
		end := 0
		for k := i + 8; k < i+24 && end == 0; k += 4 {
			// br, braa and brab, through the register that was loaded.
			if w := word(k); w&0xfffffc1f == 0xd61f0000 && w>>5&31 == ldr&31 || w&0xfefff800 == 0xd61f0800 && w>>5&31 == ldr&31 {
				end = k + 4
			}
		}
		if end == 0 {
			continue
		}
		e := PLTEntry{At: at + LinkAddr(i), Index: -1,
			Slot: (at+LinkAddr(i))&^0xfff + LinkAddr(arm64Immediate(adrp)<<12) + LinkAddr(ldr>>10&0xfff)*8}
		if word(i-4) == btiC {
			e.At -= 4
		}
		for end < len(code) && word(end) == nop && end-i < 24 {
			end += 4
		}
		e.End = at + LinkAddr(end)
		list = append(list, e)
		i = end - 4
	}
	return list
}
