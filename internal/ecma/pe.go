package ecma

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
)

// cor20Size is the size of IMAGE_COR20_HEADER, which its first word repeats (II.25.3.3).
const cor20Size = 72

// maxSections bounds the section table. The PE format allows 96.
const maxSections = 96

// Locate finds the metadata of the PE file whose first byte lies at base. The
// file may lie there as the loader maps it, each section at its RVA, as
// CoreCLR maps ReadyToRun images, or as it lies on disk, as CoreCLR maps
// images that hold IL only. Which of the two is seen from the metadata's own
// signature: the headers are the same.
func Locate(mem arch.Memory, base arch.Addr) (at arch.Addr, size uint32, err error) {
	le := binary.LittleEndian
	dos := mem.View(base, 64)
	if dos == nil {
		return 0, 0, &Error{"the DOS header of an image", base, true}
	}
	pe := base + arch.Addr(le.Uint32(dos[60:]))
	if dos[0] != 'M' || dos[1] != 'Z' || pe-base > 1<<24 {
		return 0, 0, &Error{"the DOS header of an image", base, false}
	}
	head := mem.View(pe, 26)
	if head == nil {
		return 0, 0, &Error{"the PE header of an image", pe, true}
	}
	// The data directories follow 96 bytes of the optional header of PE32
	// (magic 0x10b) and 112 of PE32+; their count lies just before them.
	opt, dirs := pe+24, pe+24+96
	if le.Uint16(head[24:]) == 0x20b {
		dirs = opt + 112
	}
	sections, optSize := le.Uint16(head[6:]), le.Uint16(head[20:])
	if string(head[:4]) != "PE\x00\x00" || sections > maxSections {
		return 0, 0, &Error{"the PE header of an image", pe, false}
	}
	d := mem.View(dirs+14*8, 8)
	if d == nil {
		return 0, 0, &Error{"the data directories of an image", dirs, true}
	}
	rva := le.Uint32(d)
	if rva == 0 || arch.Addr(optSize) < dirs-opt+15*8 {
		return 0, 0, &Error{"an image without a CLR header", dirs + 14*8, false}
	}
	table := opt + arch.Addr(optSize)
	mapped := func(rva uint32) (arch.Addr, bool) { return base + arch.Addr(rva), true }
	flat := func(rva uint32) (arch.Addr, bool) { return fileAddr(mem, base, table, sections, rva) }
	err = &Error{"the CLR header of an image", base + arch.Addr(rva), false}
	for _, place := range []func(uint32) (arch.Addr, bool){mapped, flat} {
		a, ok := place(rva)
		if !ok {
			continue
		}
		cor := mem.View(a, 16)
		if cor == nil {
			err = &Error{"the CLR header of an image", a, true}
			continue
		}
		if le.Uint32(cor) != cor20Size {
			continue
		}
		a, ok = place(le.Uint32(cor[8:]))
		if !ok {
			continue
		}
		b := mem.View(a, 4)
		if b == nil {
			err = &Error{"the metadata of an image", a, true}
			continue
		}
		if le.Uint32(b) == signature {
			return a, le.Uint32(cor[12:]), nil
		}
	}
	return 0, 0, err
}

// fileAddr returns where the byte at rva lies when the file lies at base as it
// does on disk.
func fileAddr(mem arch.Memory, base, table arch.Addr, sections uint16, rva uint32) (arch.Addr, bool) {
	for i := range arch.Addr(sections) {
		s := mem.View(table+40*i, 24)
		if s == nil {
			return 0, false
		}
		start, size := binary.LittleEndian.Uint32(s[12:]), binary.LittleEndian.Uint32(s[16:])
		if rva-start < size {
			return base + arch.Addr(binary.LittleEndian.Uint32(s[20:])) + arch.Addr(rva-start), true
		}
	}
	return 0, false
}
