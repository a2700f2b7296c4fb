package loader

import (
	"fmt"
	"path"
	"strings"

	"github.com/seamwalk/seam/arch"
)

// A module is what a list of loaded images says of one of them, as the list of
// modules in a minidump does. What the list does not say is zero.
type module struct {
	base arch.Addr // where the first byte of the file is mapped
	size uint64    // of the memory that it takes from base on, in bytes
	path string    // as the process knew it
	id   ImageID   // a build-id if it is an ELF file; timestamp and size if it is a PE file
}

// module adds an image that the dump lists. Where the dump has the first page of
// the image, its headers say what it is, and its identity is theirs. Else the list
// is believed: a file of that identity has the headers.
func (g *imageList) module(d module) {
	if d.base+arch.Addr(d.size) < d.base {
		g.p.warn("module_bad", -1, "the module %s of %#x bytes at %v goes past the end of the address space", d.path, d.size, d.base)
		return
	}
	m := g.headed(d.base)
	if m == nil {
		m = &Image{Format: "elf", bias: uint64(d.base), span: arch.Span{Lo: d.base, Hi: d.base + arch.Addr(d.size)}}
		if d.isPE(g.p.ABI) {
			m.Format = "pe"
		}
	}
	m.Path, m.ID.Name = d.path, d.id.Name
	switch {
	case m.Format == "pe" && m.pe == nil:
		m.ID.Timestamp, m.ID.Size = d.id.Timestamp, d.id.Size
	case m.Format == "elf" && m.ID.BuildID == "":
		m.ID.BuildID = d.id.BuildID
	}
	if m.Format == "elf" && m.progs == nil && m.Path != "" {
		g.placeByFile(m, d.base)
	}
	if m.span.Lo >= m.span.Hi {
		g.place(m, d.base, d.base)
	}
	g.add(m)
}

// headed makes an image of the headers that the dump has at base, or nil.
func (g *imageList) headed(base arch.Addr) *Image {
	if m := g.elfImage(base); m != nil {
		return m
	}
	h, _ := g.peHeaderAt(base)
	if h == nil {
		return nil
	}
	return &Image{Format: "pe", pe: h, bias: uint64(base), ID: ImageID{Timestamp: h.Timestamp, Size: h.ImageSize},
		span: arch.Span{Lo: base, Hi: base + arch.Addr(h.ImageSize)}}
}

// isPE reports whether the module is a PE file: by its identity, or else by its
// name and by what programs of the operating system are.
func (d *module) isPE(abi *arch.ABI) bool {
	switch {
	case d.id.BuildID != "":
		return false
	case d.id.Timestamp != 0 || d.id.Size != 0:
		return true
	}
	return namedPE(d.path) || abi.NativeFormat == "pe"
}

// namedPE reports whether files of that name are PE files.
func namedPE(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".dll" || ext == ".exe"
}

// placeByFile finds out where the ELF image m lies, whose first byte is at base
// and of whose headers the dump has nothing. They are read from its file, which
// is looked for at once. A program can be linked for base, as 0x400000, and then
// nothing was added to its addresses.
func (g *imageList) placeByFile(m *Image, base arch.Addr) {
	g.adopt(m)
	g.source(m)
	s := m.src
	s.images = s.images[:len(s.images)-1] // no file can be compared with it before it has its place
	if s.open() == nil {
		return
	}
	placed := g.elfImageOf(base, s.progs())
	if placed == nil {
		g.refuse(s, s.id.Name, "its program headers do not map its first page")
		return
	}
	m.bias, m.span = placed.bias, placed.span
	if why := m.checkDynamic(s.bytes(), s.progs()); why != "" {
		g.refuse(s, s.id.Name, why)
		return
	}
	s.images = append(s.images, m)
}

// refuse takes back the file of s, which has turned out not to be the one that
// the dump calls name.
func (g *imageList) refuse(s *source, name, why string) {
	s.refused = fmt.Sprintf("%s is not the %s of the dump: %s", s.file, name, why)
	s.mapped, s.elf, s.state, s.file = nil, nil, ImageDiffers, ""
	g.p.warn("image_differs", -1, "%s", s.refused)
}

// place sets the span of an image by its program headers, or, without them,
// from the mapping that holds first to the end of the one that holds last.
func (g *imageList) place(m *Image, first, last arch.Addr) {
	if span, ok := progSpan(m.elfProgs()); ok {
		m.span = arch.Span{Lo: span.Lo + arch.Addr(m.bias), Hi: span.Hi + arch.Addr(m.bias)}
		return
	}
	lo, ok := g.mem.mappedAt(first)
	hi, ok2 := g.mem.mappedAt(last)
	if ok && ok2 && lo.Lo <= hi.Hi {
		m.span = arch.Span{Lo: lo.Lo, Hi: hi.Hi}
	}
}
