package loader

import (
	"debug/elf"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// A grouper makes images of the mappings of one file, in address order. If the
// dump has the first bytes of a mapping they decide what begins there: an ELF
// header, a PE header, or neither. The file offset alone does not: every image
// begins with offset 0, but a ReadyToRun image's .text is mapped from offset 0 too,
// one library can be mapped several times, and a mapping can be split anywhere.
type grouper struct {
	g     *coreImages
	path  string
	exec  bool              // the file is the program itself, and may be a bundle
	names map[uint64]string // what createdump calls the assembly mapped at an offset of the bundle
	maps  []fileNote

	// last is the last of maps that is executable, -1 if none is; it holds once
	// asked is set.
	last  int
	asked bool

	farTries int // how often farHeaders has looked for program headers
}

// group adds all images of the file.
func (b *grouper) group() {
	for i := 0; i < len(b.maps); {
		m, n := b.next(i)
		if m != nil {
			for _, f := range b.maps[i : i+n] {
				m.maps = append(m.maps, fileMap{f.Span, f.off, m})
				m.span.Lo, m.span.Hi = min(m.span.Lo, f.Lo), max(m.span.Hi, f.Hi)
			}
			m.Path = b.path
			if m.Format == "pe" && strings.HasPrefix(b.path, "/dev/zero") {
				m.Path = "" // memory of its own, which an assembly was unpacked into
			}
			if m.Format == "pe" && b.exec {
				m.ID.Name = b.names[b.maps[i].off]
				if m.ID.Name == "" {
					m.ID.Name = unnamed
				}
			}
			b.g.add(m)
		}
		i += max(n, 1)
	}
}

// next makes an image of the mapping at i and the n-1 that follow it.
func (b *grouper) next(i int) (m *Image, n int) {
	if m, n := b.elf(i); n > 0 {
		return m, n
	}
	if m, n := b.pe(i); n > 0 {
		return m, n
	}
	return b.headless(i)
}

// elf recognises an ELF header in the dump.
func (b *grouper) elf(i int) (m *Image, n int) {
	f := b.maps[i]
	if head := b.g.mem.dumped(f.Lo); len(head) < 4 || string(head[:4]) != elf.ELFMAG {
		return nil, 0
	}
	m = b.g.elfImage(f.Lo)
	if m == nil {
		m, n = b.farHeaders(i)
	}
	if m == nil || m.progs == nil {
		return m, max(n, 1)
	}
	n = 1
	for i+n < len(b.maps) && b.maps[i+n].Hi <= m.span.Hi && b.fitsELF(m, b.maps[i+n]) {
		n++
	}
	if n == 1 && uint64(f.Hi-f.Lo) < uint64(m.span.Hi-m.span.Lo) && wholeFile(m.progs, uint64(f.Hi-f.Lo)) {
		return nil, 1 // someone read the file through a mapping; it was not loaded
	}
	return m, n
}

// fitsELF reports whether f may be a mapping of m: inside a segment its
// offset must agree, between segments anything goes.
func (b *grouper) fitsELF(m *Image, f fileNote) bool {
	gap := true
	for _, p := range m.progs {
		if s := pageSpan(m.bias+p.Vaddr, p.Memsz); p.Type == elf.PT_LOAD && s.Has(f.Lo) {
			if p.Off&^(pageSize-1)+uint64(f.Lo-s.Lo) == f.off {
				return true
			}
			gap = false
		}
	}
	return gap
}

// wholeFile reports whether a mapping of n bytes reaches the end of the last
// of several segments in the file.
func wholeFile(progs []objfile.Prog, n uint64) bool {
	loads, end := 0, uint64(0)
	for _, p := range progs {
		if p.Type == elf.PT_LOAD {
			loads++
			end = max(end, p.Off+p.Filesz)
		}
	}
	return loads > 1 && n >= end
}

// pe recognises PE headers in the dump. In a bundle an image need not begin
// at a page: ReadyToRun assemblies are aligned to 64 bytes, others to 16 or so.
func (b *grouper) pe(i int) (m *Image, n int) {
	f := b.maps[i]
	first, find := b.g.peHeaderAt, b.g.peHeaderAt
	if b.exec {
		find = b.g.bundledPE
		if f.off > 0 {
			first = find
		}
	}
	if h, at := first(f.Lo); h != nil {
		return b.peImage(i, f.Lo+arch.Addr(at), f.off+at, h)
	}
	if !b.mappedPE(i) {
		return nil, 0
	}
	// The first page of .text has the headers too, when both are mapped from
	// one offset. A composite image's was dumped without its header page.
	t := b.maps[i+1]
	if h, at := find(t.Lo); h != nil && t.off == f.off {
		if base := f.Lo + arch.Addr(at); b.isSection(h, base, f.off+at, t) {
			return b.peImage(i, base, f.off+at, h)
		}
	}
	return nil, 0
}

// peImage makes an image of the PE headers h that begin at base, mapped from
// offset shift of the file.
func (b *grouper) peImage(i int, base arch.Addr, shift uint64, h *objfile.PE) (*Image, int) {
	m := &Image{Format: "pe", pe: h, shift: shift, bias: uint64(base),
		ID: ImageID{Timestamp: h.Timestamp, Size: h.ImageSize}}
	m.span = b.maps[i].Span
	end := base + arch.Addr(h.ImageSize)
	n := 1
	for i+n < len(b.maps) && b.maps[i+n].Lo < end && b.isSection(h, base, shift, b.maps[i+n]) {
		n++
	}
	m.laid = n == 1 && shift == 0 && !strings.Contains(b.path, "/") && fileMap{Span: b.maps[i].Span}.laidOut(h)
	m.Flat = n == 1 && !m.laid && !b.isSection(h, base, shift, b.maps[i])
	if !m.Flat {
		m.span.Hi = max(m.span.Hi, pageSpan(uint64(end), 0).Hi)
	}
	return m, n
}

// isSection reports whether f is where a section of a PE image that is mapped
// section by section would lie.
func (b *grouper) isSection(h *objfile.PE, base arch.Addr, shift uint64, f fileNote) bool {
	for i := range h.Sections {
		s := &h.Sections[i]
		at := pageSpan(uint64(base)+uint64(s.VA), uint64(max(s.VSize, s.RawSize)))
		if at.Has(f.Lo) && (shift+uint64(s.RawOff))&^(pageSize-1)+uint64(f.Lo-at.Lo) == f.off && f.Lo > base {
			return true
		}
	}
	return false
}

// headless makes an image of mappings whose first page the dump does not have, by
// the sizes, distances and offsets that loaders give to mappings. What the image's
// file has is believed only if it would be mapped so.
func (b *grouper) headless(i int) (m *Image, n int) {
	f := b.maps[i]
	if b.mappedPE(i) {
		n = 2
		for i+n < len(b.maps) && b.maps[i+n].off > b.maps[i+n-1].off &&
			b.maps[i+n].Lo-b.maps[i+n-1].Hi <= 1<<18 && !b.mappedPE(i+n) {
			n++
		}
		return &Image{Format: "pe", shift: f.off, bias: uint64(f.Lo), span: f.Span}, n
	}
	if namedPE(f.path) || b.exec && f.off > 0 {
		return &Image{Format: "pe", Flat: true, shift: f.off, bias: uint64(f.Lo), span: f.Span}, 1
	}
	if f.off != 0 || !b.code(i) {
		return nil, 1
	}
	n = 1
	for i+n < len(b.maps) && b.maps[i+n].off > 0 && b.maps[i+n].off >= b.maps[i+n-1].off && b.maps[i+n].Lo-b.maps[i+n-1].Hi <= 1<<22 {
		n++
	}
	return &Image{Format: "elf", bias: uint64(f.Lo), span: f.Span}, n
}

// mappedPE reports whether a ReadyToRun image mapped section by section begins
// at i: a page or two of headers, and .text from the same offset or the next
// page on, 64 KB or so higher.
func (b *grouper) mappedPE(i int) bool {
	if i+1 >= len(b.maps) {
		return false
	}
	f, t := b.maps[i], b.maps[i+1]
	if f.off != 0 && !b.exec {
		return false // two small sections can look alike
	}
	return f.Hi-f.Lo <= 2*pageSize && t.off-f.off <= pageSize && t.Lo > f.Hi && t.Lo-f.Lo <= 1<<17
}

// code reports whether the file, of which the mappings from i on are, seems to
// have been loaded, and not just read through a mapping.
func (b *grouper) code(i int) bool {
	name := baseName(b.path)
	return b.exec || strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.") || b.runs(i)
}

// runs reports whether a mapping of the file from i on is executable, by the
// dump's own flags.
func (b *grouper) runs(i int) bool {
	if !b.asked {
		b.asked = true
		for b.last = len(b.maps) - 1; b.last >= 0; b.last-- {
			if m, ok := b.g.mem.mappedAt(b.maps[b.last].Lo); ok && m.flags&uint32(elf.PF_X) != 0 {
				break
			}
		}
	}
	return i <= b.last
}
