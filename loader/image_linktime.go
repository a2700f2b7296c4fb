package loader

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// FileWord returns the 8 bytes at a as a little-endian number, as they were
// once the image had been loaded: see FileView.
func (m *Image) FileWord(a arch.Addr) (v uint64, ok bool) {
	b := m.FileView(a, 8)
	if b == nil {
		return 0, false
	}
	return le64(b), true
}

// FileView returns the n bytes at a as they were right after the image had
// been loaded: the file's, with the relocations applied that add the image's
// bias, zeros in .bss. It is nil when the file is not at hand, or when a does
// not lie in the image. What the process did to writable memory since is not
// in it: use it for constants only that the compiler put into writable
// sections, as CoreCLR's contract descriptor in .data, which no dump of
// createdump's holds. The bytes are a copy.
func (m *Image) FileView(a arch.Addr, n int) []byte {
	if n <= 0 || n > 1<<30 || a+arch.Addr(n) < a {
		return nil
	}
	if b := m.kept.linkTime(a, n); b != nil {
		if m.mem.track != nil {
			m.mem.track.linkTime(m, a, b)
		}
		return b
	}
	if m.src == nil || m.src.open() == nil {
		return nil
	}
	b := m.linkTime(a, n)
	if b == nil {
		return nil
	}
	m.relOnce.Do(func() { m.rels = m.relocations() })
	if m.rels.Missing {
		return nil
	}
	m.rels.Apply(uint64(a)-m.bias, b, m.bias)
	if m.mem.track != nil {
		m.mem.track.linkTime(m, a, b)
	}
	return b
}

// linkTime returns a copy of the n bytes at a as the file has them, without
// relocations, or nil.
func (m *Image) linkTime(a arch.Addr, n int) []byte {
	if m.Format == "elf" {
		return m.src.elf.LinkTime(m.src.bytes(), uint64(a)-m.bias, n)
	}
	h := m.peHead()
	if h == nil || uint64(a) < m.bias || uint64(a)-m.bias > 1<<32-1 {
		return nil
	}
	file, off := m.src.from(m.shift), uint64(a)-m.bias
	if m.Flat {
		return slices.Clone(bin.Slice(file, off, uint64(n)))
	}
	return h.LinkTime(file, uint32(off), n)
}

// relocations returns those that add the image's bias. A flat PE image has none.
func (m *Image) relocations() *objfile.Relocations {
	switch {
	case m.Format == "elf":
		return m.src.elf.Relocations(m.src.bytes())
	case m.Flat:
		return &objfile.Relocations{}
	}
	return m.peHead().Relocations(m.src.from(m.shift))
}
