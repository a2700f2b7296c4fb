package loader

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// Entries returns where the process began to run: the entry points of the
// program (AT_ENTRY) and of its dynamic linker (AT_BASE and its e_entry, gABI
// chapter 4), to which the kernel jumps first. It is empty where the dump has no
// auxiliary vector.
func (p *Process) Entries() (list []arch.Addr) {
	if p.core == nil {
		return nil
	}
	if a := p.core.auxv[atEntry]; a != 0 {
		list = append(list, arch.Addr(a))
	}
	base := arch.Addr(p.core.auxv[atBase])
	m := p.ImageAt(base)
	if base == 0 || m == nil || m.Format != "elf" {
		return list
	}
	const eEntry = 24
	if head := p.Memory.View(base, objfile.ELFHeaderSize); head != nil {
		if _, err := objfile.ParseELFHeader(head); err == nil {
			list = append(list, arch.Addr(m.bias+le64(head[eEntry:])))
		}
	}
	return list
}
