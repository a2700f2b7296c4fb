package symbolize

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// Sizes of the procedure linkage table, the same in the psABIs of x86-64 and
// AArch64: entries of 16 bytes, relocations of 24 (Elf64_Rela).
const (
	pltEntry = 16
	relaSize = 24
)

// openPLT names the entries of the procedure linkage table after the functions
// they jump to, as gdb does: a thread can stand in one. They come in the order
// of their relocations, behind the code that resolves names lazily, which fills
// what is left of .plt; .plt.sec (with IBT) has none.
func openPLT(s *Symbolizer, img *loader.Image) *table {
	rela := mapped(s, img, ".rela.plt")
	n := len(rela) / relaSize
	if n == 0 {
		return nil
	}
	syms, strs := dynamicSymbols(s, img)
	t := &table{names: strs, suffix: "@plt"}
	for _, section := range []string{".plt", ".plt.sec"} {
		span, ok := img.Table(section)
		if !ok || span.Hi-span.Lo < arch.Addr(n*pltEntry) || span.Hi < span.Lo {
			continue
		}
		first := arch.LinkAddr(uint64(span.Hi) - uint64(n*pltEntry) - img.Bias())
		if section == ".plt.sec" {
			first = arch.LinkAddr(uint64(span.Lo) - img.Bias())
		}
		for i := range n {
			// r_info holds the symbol's index in its upper half.
			sym := uint64(le32(rela[i*relaSize+12:]))
			if sym == 0 || (sym+1)*symSize > uint64(len(syms)) {
				continue // IRELATIVE has no symbol
			}
			name := le32(syms[sym*symSize:])
			if name == 0 || uint64(name) >= uint64(len(strs)) {
				continue
			}
			at := first + arch.LinkAddr(i*pltEntry)
			t.entries = append(t.entries, entry{at: at, end: at + pltEntry, name: name, sized: true})
		}
	}
	if t.entries == nil {
		return nil
	}
	t.finish(0, linkEnd(img))
	return t
}
