package loader

import (
	"debug/elf"
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// elfImage makes an image of the ELF file whose header page the dump has at
// base, or nil.
func (g *imageList) elfImage(base arch.Addr) *Image {
	h := g.elfHead(base)
	if h == nil {
		return nil
	}
	return g.elfImageOf(base, g.progsAt(base+arch.Addr(h.Phoff), h.Phnum))
}

// elfHead returns the ELF header that the dump has at base, or nil if there is
// none of a program or library of the process.
func (g *imageList) elfHead(base arch.Addr) *objfile.ELFHeader {
	head := g.mem.View(base, objfile.ELFHeaderSize)
	if head == nil {
		return nil
	}
	h, err := objfile.ParseELFHeader(head)
	if err != nil || h.Machine != g.p.Arch.Machine || h.Phnum == 0 || h.Phnum > 1024 {
		return nil
	}
	return h
}

// progsAt returns the n program headers that the dump has at a, or nil.
func (g *imageList) progsAt(a arch.Addr, n int) []objfile.Prog {
	raw := g.mem.View(a, n*objfile.ProgSize)
	if raw == nil {
		return nil
	}
	progs, _ := objfile.ParseProgs(raw, 0, n)
	return progs
}

// elfImageOf makes an image of the ELF file at base that has these program
// headers, or nil if it cannot.
func (g *imageList) elfImageOf(base arch.Addr, progs []objfile.Prog) *Image {
	m := &Image{Format: "elf", progs: progs}
	span, ok := progSpan(progs)
	if !ok {
		return nil
	}
	// The header lies at file offset 0, which the first PT_LOAD maps.
	m.bias = uint64(base) - uint64(span.Lo)
	for _, p := range progs {
		if p.Type == elf.PT_LOAD && p.Off < pageSize {
			m.bias = uint64(base) - (p.Vaddr - p.Off)
			break
		}
	}
	m.span = arch.Span{Lo: span.Lo + arch.Addr(m.bias), Hi: span.Hi + arch.Addr(m.bias)}
	if m.span.Lo > m.span.Hi || !m.span.Has(base) {
		return nil
	}
	m.ID.BuildID = objfile.MappedBuildID(g.mem, m.bias, progs)
	return m
}

// progSpan returns the link addresses from the first to the last PT_LOAD.
func progSpan(progs []objfile.Prog) (s arch.Span, ok bool) {
	for _, p := range progs {
		if p.Type != elf.PT_LOAD || p.Memsz == 0 || p.Memsz > 1<<40 {
			continue
		}
		q := pageSpan(p.Vaddr, p.Memsz)
		if !ok {
			s, ok = q, true
		}
		s.Lo, s.Hi = min(s.Lo, q.Lo), max(s.Hi, q.Hi)
	}
	return s, ok && s.Lo < s.Hi
}

// peHeaderAt returns the PE headers that the dump has at a, or nil.
func (g *imageList) peHeaderAt(a arch.Addr) (h *objfile.PE, at uint64) {
	return g.firstPE(a, 1)
}

// bundledPE returns the first PE headers in the page at a, and how far into it
// they lie: in a single-file bundle an image need not begin at a page.
func (g *imageList) bundledPE(a arch.Addr) (h *objfile.PE, at uint64) {
	return g.firstPE(a, pageSize)
}

// firstPE looks for PE headers in the n bytes from a on that the dump has, where
// a bundle can have them: at multiples of 16.
func (g *imageList) firstPE(a arch.Addr, n int) (h *objfile.PE, at uint64) {
	page := g.mem.dumped(a)
	data := page[:min(len(page), 3*pageSize)]
	for at := 0; at < n && at+64 <= len(data); at += 16 {
		if data[at] != 'M' || data[at+1] != 'Z' {
			continue
		}
		if h, err := objfile.ParsePE(data[at:]); err == nil && h.For(g.p.Arch) {
			return h, uint64(at)
		}
	}
	return nil, 0
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
