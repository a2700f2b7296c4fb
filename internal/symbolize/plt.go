package symbolize

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
	"github.com/seamwalk/seam/loader"
)

// openPLT names the entries of procedure linkage tables after the functions they
// jump to, as gdb does: a thread can stand in one.
func openPLT(s *Symbolizer, img *loader.Image) *table {
	t := pltTable(s.proc.Arch, func(name string) (at arch.LinkAddr, data []byte) {
		if span, ok := img.Table(name); ok && span.Lo < span.Hi && span.Hi-span.Lo <= maxMapped {
			return arch.LinkAddr(uint64(span.Lo) - img.Bias()), mapped(s, img, name)
		}
		return 0, nil
	})
	if t != nil {
		t.finish(0, linkEnd(img))
	}
	return t
}

// pltTable finds what openPLT does in the sections of an image; section gives
// where one lies and its bytes.
//
// The function is found by the slot of the global offset table that an entry jumps
// through: the dynamic linker fills it in by a relocation, which has the symbol.
// Entries of .plt.got, for functions whose address is taken too, are filled in at
// once, by .rela.dyn.
func pltTable(a *arch.Arch, section func(name string) (at arch.LinkAddr, data []byte)) *table {
	_, lazy := section(".rela.plt")
	_, syms := section(".dynsym")
	_, strs := section(".dynstr")
	t := &table{names: strs, suffix: "@plt"}
	slots := map[arch.LinkAddr]uint32{} // to names
	fill := func(rela []byte, from, to arch.LinkAddr) {
		for ; len(rela) >= objfile.RelaSize; rela = rela[objfile.RelaSize:] {
			r := objfile.ParseRela(rela)
			if at := arch.LinkAddr(r.At); at >= from && at <= to {
				if name := symbolName(r, syms, strs); name != 0 {
					slots[at] = name
				}
			}
		}
	}
	fill(lazy, 0, ^arch.LinkAddr(0))
	for _, table := range []string{".plt", ".plt.sec", ".plt.got"} {
		at, code := section(table)
		if code == nil {
			continue
		}
		entries := a.PLT(code, at)
		if table == ".plt.got" && len(entries) > 0 {
			from, to := entries[0].Slot, entries[0].Slot
			for _, e := range entries {
				from, to = min(from, e.Slot), max(to, e.Slot)
			}
			_, rela := section(".rela.dyn") // which has thousands of others
			fill(rela, from, to)
		}
		for _, e := range entries {
			name := slots[e.Slot]
			if e.Index >= 0 && e.Index < len(lazy)/objfile.RelaSize {
				name = symbolName(objfile.ParseRela(lazy[e.Index*objfile.RelaSize:]), syms, strs)
			}
			if name != 0 {
				t.entries = append(t.entries, entry{at: e.At, end: e.End, name: name, sized: true})
			}
		}
	}
	if t.entries == nil {
		return nil
	}
	return t
}

// symbolName returns where strs has the name of a relocation's symbol, or 0:
// IRELATIVE and RELATIVE have none.
func symbolName(r objfile.Rela, syms, strs []byte) uint32 {
	if r.Sym == 0 || (uint64(r.Sym)+1)*objfile.SymSize > uint64(len(syms)) {
		return 0
	}
	s := objfile.ParseSymbol(syms[uint64(r.Sym)*objfile.SymSize:])
	if uint64(s.Name) < uint64(len(strs)) {
		return s.Name
	}
	return 0
}
