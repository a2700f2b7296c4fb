package loader

import (
	"debug/elf"
	"slices"

	"github.com/seamwalk/seam/arch"
)

// memory makes the memory of the core's segments (PT_LOAD).
func (c *core) memory() {
	m := c.p.Memory
	m.sparse = true
	size := uint64(len(c.data))
	pieces := make([]extent, 0, len(c.loads))
	mapped := make([]mapping, 0, len(c.loads))
	var cut, lost uint64
	for _, ph := range c.loads {
		if ph.Memsz > ph.Filesz {
			// The kernel lists a mapping whole and says with p_filesz how much
			// of it follows; the rest was not dumped, and is not zero.
			m.sparse = false
		}
		mem := max(ph.Memsz, ph.Filesz)
		if ph.Vaddr+mem < ph.Vaddr {
			c.p.warn("segment_bad", int64(ph.At), "a segment at %#x of %#x bytes goes past the end of the address space", ph.Vaddr, mem)
			continue
		}
		if mem > 0 {
			lo := arch.Addr(ph.Vaddr)
			mapped = append(mapped, mapping{arch.Span{Lo: lo, Hi: lo + arch.Addr(mem)}, uint32(ph.Flags)})
		}
		n := ph.Filesz
		if have := size - min(ph.Off, size); have < n {
			cut++
			lost += n - have
			n = have
		}
		if n > 0 {
			pieces = append(pieces, extent{arch.Addr(ph.Vaddr), ph.Off, n})
		}
	}
	if cut > 0 {
		c.p.warn("core_cut", int64(size), "the file ends before its segments do: %d of %d segments lack %d bytes", cut, len(c.loads), lost)
	}
	m.lists(mapped)
	m.holds(c.data, pieces)
}

// permissions notes what [Memory.Executable] has to know of the core besides the
// flags of its segments, once the images are known.
func (c *core) permissions() {
	m := c.p.Memory
	m.sparse = m.sparse || !c.whole
	// A process has code, so a writer of cores that marks no segment as executable
	// says nothing about permissions. Cores trimmed by older versions of Seam have
	// wrong flags: what came from an image's file was marked as readable only.
	m.trimmed = c.kept != nil
	m.access = (!m.trimmed || c.kept.access) &&
		slices.ContainsFunc(m.mapped, func(mp mapping) bool { return mp.flags&uint32(elf.PF_X) != 0 })
	for _, f := range c.notes.files {
		m.noted = append(m.noted, f.Span)
	}
	for _, img := range c.p.Images {
		if img.src == nil {
			m.noted = append(m.noted, img.span) // the vDSO
		}
	}
	m.noted = joined(m.noted)
}
