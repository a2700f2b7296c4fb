package loader

import (
	"debug/elf"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// DataSymbol returns the name, which begins with prefix, of the data of an ELF
// image that begins at a, by the symbol table of its file or its debug file; ""
// if there is none. It reads the whole table. A trimmed core keeps the answer.
func (m *Image) DataSymbol(a arch.Addr, prefix string) string {
	if m.kept != nil {
		for name, f := range m.kept.lookups {
			if f.ok && f.at == a && strings.HasPrefix(name, prefix) {
				m.answered(name, f)
				return name
			}
		}
	}
	syms, strs := m.Section(".symtab"), m.Section(".strtab")
	for ; len(syms) >= objfile.SymSize; syms = syms[objfile.SymSize:] {
		s := objfile.ParseSymbol(syms)
		if s.Shndx == elf.SHN_UNDEF || arch.Addr(m.bias+s.Value) != a {
			continue
		}
		if name := bin.CString(strs, uint64(s.Name)); len(name) <= maxSymbol && strings.HasPrefix(name, prefix) {
			m.answered(name, found{a, s.Size, true})
			return name
		}
	}
	return ""
}

// maxSymbol bounds a symbol's name, in bytes.
const maxSymbol = 1 << 12
