package loader

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// fromSegments finds PE images in a core without NT_FILE. The dynamic linker's
// list does not have assemblies. But each assembly is mapped read-only from its
// first byte on, or, in a single-file program, from the page of the bundle that
// its first byte lies in. Only the first page of each read-only segment is looked
// at.
func (g *coreImages) fromSegments(loads []objfile.Prog) {
	var host *Image
	if len(g.list) > 0 {
		host = g.list[0] // the program
	}
	for _, l := range loads {
		if len(g.list) >= g.limit {
			break // finish says so
		}
		if l.Flags != elf.PF_R || l.Filesz == 0 || g.known(arch.Addr(l.Vaddr)) {
			continue
		}
		lo := arch.Addr(l.Vaddr)
		h, at := g.bundledPE(lo)
		if h == nil {
			continue
		}
		m := &Image{Format: "pe", pe: h, bias: uint64(lo) + at, ID: ImageID{Timestamp: h.Timestamp, Size: h.ImageSize, Name: unnamed}}
		m.Flat = !g.textMapped(m)
		size := uint64(h.ImageSize)
		if m.Flat {
			size = 0
			for _, s := range h.Sections {
				size = max(size, uint64(s.RawOff)+uint64(s.RawSize))
			}
		}
		m.span = pageSpan(m.bias, size)
		if m.Flat {
			m.span.Hi = g.contiguous(lo, m.span.Hi)
		}
		if m.span.Lo < m.span.Hi {
			g.add(m)
			g.fromBundle(m, host)
		}
	}
}

// known reports whether a lies in an image that was found.
func (g *coreImages) known(a arch.Addr) bool {
	for _, m := range g.list {
		if m.span.Has(a) {
			return true
		}
	}
	return false
}

// textMapped reports whether something executable is mapped where the first
// section goes when an image is mapped section by section.
func (g *coreImages) textMapped(m *Image) bool {
	if len(m.pe.Sections) == 0 {
		return false
	}
	mp, ok := g.mem.mappedAt(arch.Addr(m.bias + uint64(m.pe.Sections[0].VA)))
	return ok && mp.flags&uint32(elf.PF_X) != 0
}

// contiguous returns where the mappings end that follow a without a gap and
// are read-only, at most end.
func (g *coreImages) contiguous(a, end arch.Addr) arch.Addr {
	for a < end {
		mp, ok := g.mem.mappedAt(a)
		if !ok || mp.flags != uint32(elf.PF_R) {
			break
		}
		a = mp.Hi
	}
	return min(a, end)
}
