package loader

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// served returns the file's bytes from a on, or nil.
func (m *Image) served(a arch.Addr) []byte {
	if m.src == nil || m.src.open() == nil {
		return nil
	}
	m.servedOnce.Do(func() { m.ranges = m.readOnly() })
	for i := range m.ranges {
		if r := &m.ranges[i]; r.Has(a) {
			// An offset that was claimed may lie before the file (above 2^63)
			// or behind it.
			data, off := m.src.bytes(), r.off+uint64(a-r.Lo)
			if off >= uint64(len(data)) {
				return nil
			}
			data = data[off:]
			return data[:min(uint64(r.Hi-a), uint64(len(data)))]
		}
	}
	return nil
}

// absent says why the byte at a, in the image and not in the dump, is not at hand.
func (m *Image) absent(a arch.Addr) Absence {
	if m.kept != nil && m.src.open() == nil {
		// As it was when the core was trimmed.
		return m.kept.absent(m, a)
	}
	if m.src == nil || m.writable(a) {
		return NotDumped
	}
	if m.src.open() == nil {
		return m.src.state
	}
	m.servedOnce.Do(func() { m.ranges = m.readOnly() })
	for i := range m.ranges {
		if m.ranges[i].Has(a) {
			return ImageCut
		}
	}
	return NotDumped
}

// executable is Memory.Executable for an address in the image, by its headers.
func (m *Image) executable(a arch.Addr) (exec, known bool) {
	if m.Format == "elf" {
		for _, p := range m.elfProgs() {
			if p.Type == elf.PT_LOAD && pageSpan(m.bias+p.Vaddr, p.Memsz).Has(a) {
				exec, known = exec || p.Flags&elf.PF_X != 0, true
			}
		}
		return exec, known
	}
	if m.Flat {
		return false, true // mapped to be read (FlatImageLayout, src/coreclr/vm/peimagelayout.cpp)
	}
	if h := m.peHead(); h != nil {
		for i := range h.Sections {
			if s := &h.Sections[i]; pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize))).Has(a) {
				exec, known = exec || s.Characteristics&objfile.PEExecutable != 0, true
			}
		}
	}
	return exec, known
}

// writable reports whether the process could write to the page at a, by the
// headers that are at hand. RELRO counts as writable: the loader wrote to it.
func (m *Image) writable(a arch.Addr) bool {
	if m.Format == "elf" {
		for _, p := range m.elfProgs() {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 && pageSpan(m.bias+p.Vaddr, p.Memsz).Has(a) {
				return true
			}
		}
		return false
	}
	h := m.peHead()
	if m.Flat || h == nil {
		return false
	}
	for i := range h.Sections {
		if s := &h.Sections[i]; s.Characteristics&objfile.PEWritable != 0 && pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize))).Has(a) {
			d, ok := h.Dir(objfile.PEExceptions)
			return !ok || !(arch.Span{Lo: arch.Addr(m.bias + uint64(d.RVA)), Hi: arch.Addr(m.bias + uint64(d.RVA) + uint64(d.Size))}).Has(a)
		}
	}
	return false
}

// readOnly returns the ranges that the process cannot have changed, so that
// the file's bytes are the process's. One exception is made for writable
// sections: the RUNTIME_FUNCTIONs of a ReadyToRun image lie in its .data, and
// nobody writes to them; createdump's dumps hold a third of them at most.
func (m *Image) readOnly() []fileMap {
	var out []fileMap
	if m.Format == "elf" {
		maps := m.maps
		if len(maps) == 0 {
			for _, p := range m.src.progs() {
				if p.Type == elf.PT_LOAD {
					s := pageSpan(m.bias+p.Vaddr, p.Filesz)
					maps = append(maps, fileMap{s, p.Off - (m.bias + p.Vaddr - uint64(s.Lo)), m})
				}
			}
		}
		for _, r := range maps {
			parts := []fileMap{r}
			for _, p := range m.src.progs() {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 {
					parts = without(parts, pageSpan(m.bias+p.Vaddr, p.Memsz))
				}
			}
			out = append(out, parts...)
		}
		return out
	}
	h := m.peHead()
	if m.Flat || h == nil {
		return m.maps
	}
	maps := m.maps
	if m.laid {
		maps = m.sections(h)
	}
	for _, r := range maps {
		parts := []fileMap{r}
		for i := range h.Sections {
			if s := &h.Sections[i]; s.Characteristics&objfile.PEWritable != 0 {
				parts = without(parts, pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize))))
			}
		}
		out = append(out, parts...)
	}
	if d, ok := h.Dir(objfile.PEExceptions); ok {
		if off, n, ok := h.FileOff(d.RVA); ok {
			lo := arch.Addr(m.bias + uint64(d.RVA))
			out = append(out, fileMap{arch.Span{Lo: lo, Hi: lo + arch.Addr(min(d.Size, n))}, m.shift + uint64(off), m})
		}
	}
	return out
}

// laidOut reports whether r, which no mapping of a file is, is memory that the runtime
// has made for a whole PE image, section by section: an assembly that was compressed
// in a bundle, which takes as much memory as its headers h claim.
func (r fileMap) laidOut(h *objfile.PE) bool {
	end := uint64(0)
	for i := range h.Sections {
		end = max(end, uint64(h.Sections[i].RawOff)+uint64(h.Sections[i].RawSize))
	}
	size := pageSpan(0, uint64(h.ImageSize)).Hi
	return r.Hi-r.Lo == size && pageSpan(0, end).Hi != size
}

// sections returns where the parts of a PE file lie that is laid out section by
// section.
func (m *Image) sections(h *objfile.PE) (out []fileMap) {
	put := func(va, off, n uint64) {
		at := arch.Span{Lo: arch.Addr(m.bias + va), Hi: arch.Addr(m.bias + va + n)}
		if at.Lo < at.Hi && at.Lo >= m.span.Lo && at.Hi <= m.span.Hi {
			out = append(out, fileMap{at, m.shift + off, m})
		}
	}
	first := uint64(h.ImageSize)
	for i := range h.Sections {
		s := &h.Sections[i]
		first = min(first, uint64(s.VA), uint64(s.RawOff))
		put(uint64(s.VA), uint64(s.RawOff), uint64(min(s.VSize, s.RawSize)))
	}
	put(0, 0, first)
	return out
}

// pageSpan returns the whole pages that hold the n bytes at a.
func pageSpan(a, n uint64) arch.Span {
	return arch.Span{Lo: arch.Addr(a &^ (pageSize - 1)), Hi: arch.Addr((a + n + pageSize - 1) &^ (pageSize - 1))}
}

// without cuts s out of maps.
func without(maps []fileMap, s arch.Span) []fileMap {
	var out []fileMap
	for _, r := range maps {
		if s.Hi <= r.Lo || r.Hi <= s.Lo {
			out = append(out, r)
			continue
		}
		if r.Lo < s.Lo {
			out = append(out, fileMap{arch.Span{Lo: r.Lo, Hi: s.Lo}, r.off, r.img})
		}
		if s.Hi < r.Hi {
			out = append(out, fileMap{arch.Span{Lo: s.Hi, Hi: r.Hi}, r.off + uint64(s.Hi-r.Lo), r.img})
		}
	}
	return out
}
