package loader

import (
	"debug/elf"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// maxFar bounds the gaps between the mappings of an image whose program headers
// are not known. Where BOLT adds a segment it begins at a multiple of 2 MiB.
const maxFar = 1 << 26

// maxFarTries bounds how often the program headers of one file are looked for,
// which may cost a search of folders. A file is loaded once, or a few times.
const maxFarTries = 64

// farHeaders makes an image of the mappings from i on. The dump has its ELF
// header, and the program headers do not follow the ELF header: BOLT adds segments
// to a file, has no room for their headers in front of the first section, and puts
// all program headers at the end of the file. Dumps hold no page of a file but the
// first. So the program headers are looked for in the mapping that has that part
// of the file, if the dump has its bytes, and then in the file on disk. Where
// neither has them the image takes the mappings that look like its own, n of
// them, and a warning says so.
func (b *grouper) farHeaders(i int) (m *Image, n int) {
	g, f := b.g, b.maps[i]
	h := g.elfHead(f.Lo)
	if h == nil || b.farTries >= maxFarTries || f.off != 0 || h.Type != elf.ET_EXEC && h.Type != elf.ET_DYN {
		return nil, 1
	}
	b.farTries++
	for _, o := range b.maps[i:] {
		if d := h.Phoff - o.off; h.Phoff >= o.off && d < uint64(o.Hi-o.Lo) {
			if progs := g.progsAt(o.Lo+arch.Addr(d), h.Phnum); progs != nil {
				if m := g.elfImageOf(f.Lo, progs); m != nil {
					return m, 1
				}
			}
		}
	}
	m, refused := b.fileHeaders(i)
	if m != nil {
		return m, 1
	}
	if !b.code(i) {
		return nil, 1
	}
	m = &Image{Format: "elf", span: f.Span}
	if h.Type == elf.ET_DYN {
		m.bias = uint64(f.Lo)
	}
	for n = 1; i+n < len(b.maps); n++ {
		if o, last := b.maps[i+n], b.maps[i+n-1]; o.off == 0 || o.off < last.off || o.Lo-last.Hi > maxFar {
			break
		}
	}
	if refused == "" {
		refused = "no file of that name is at hand"
	}
	g.p.warn("no_headers", -1, "the program headers of %s lie at offset %#x of the file, which the dump does not have: %s; frames in it are left and named by guesses only", b.path, h.Phoff, refused)
	return m, n
}

// fileHeaders makes an image with the program headers of the file on disk, if
// the file is the same build. Three things say so: its ELF header is that of the
// dump, with the offset of the section headers, which nearly every change of a
// file moves; the build-id lies in the dump where the file's headers say; and the
// file would be mapped as the dump has it mapped.
func (b *grouper) fileHeaders(i int) (m *Image, refused string) {
	g, base := b.g, b.maps[i].Lo
	if g.find == nil {
		return nil, ""
	}
	head := g.mem.dumped(base)[:objfile.ELFHeaderSize]
	name := baseName(b.path)
	for path := range each(g.find, ImageID{Name: name}, b.path) {
		c, ok := g.p.held.candidate(path)
		if !ok {
			continue
		}
		m, why := b.sameHeader(i, c.data, head)
		g.p.held.drop(c.data)
		if m != nil {
			return m, ""
		}
		refused = fmt.Sprintf("%s is not the %s of the dump: %s", path, name, why)
	}
	return nil, refused
}

// sameHeader makes an image of the mapping at i and the program headers of the
// file that data is, or says why it is another file.
func (b *grouper) sameHeader(i int, data, head []byte) (*Image, string) {
	if string(bin.Slice(data, 0, objfile.ELFHeaderSize)) != string(head) {
		return nil, "it has another ELF header"
	}
	h, err := objfile.ParseELFHeader(data)
	if err != nil {
		return nil, err.Error()
	}
	progs, whole := objfile.ParseProgs(data, h.Phoff, h.Phnum)
	if !whole {
		return nil, "it ends before its program headers do"
	}
	m := b.g.elfImageOf(b.maps[i].Lo, progs)
	if m == nil {
		return nil, "its program headers do not map its first page"
	}
	id := objfile.FileBuildID(data, progs)
	if m.ID.BuildID != "" && id != m.ID.BuildID {
		return nil, fmt.Sprintf("its build-id is %s, not %s", id, m.ID.BuildID)
	}
	b.g.adopt(m)
	for _, f := range b.maps[i:] {
		if f.Hi > m.span.Hi {
			break
		}
		m.maps = append(m.maps, fileMap{f.Span, f.off, m})
	}
	why := m.checkMaps(progs, uint64(len(data)))
	if why == "" {
		why = m.checkDynamic(data, progs)
	}
	m.maps = nil // group adds the mappings
	if why != "" {
		return nil, why
	}
	return m, ""
}
