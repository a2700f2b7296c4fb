package symbolize

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
	"github.com/seamwalk/seam/loader"
)

// openKept takes the symbols that a trimmed dump carries: those that the dump
// it was cut from needed. If that had the image's file, there is nothing to look
// for elsewhere.
func openKept(_ *Symbolizer, img *loader.Image) *table {
	kept := img.KeptSymbols()
	if kept == nil {
		return nil
	}
	t := &table{final: img.CutWithFile(), plain: make([]string, 0, len(kept))}
	for _, y := range kept {
		if y.At+arch.LinkAddr(y.Size) < y.At {
			continue
		}
		t.entries = append(t.entries, entry{at: y.At, end: y.At + arch.LinkAddr(y.Size), name: uint32(len(t.plain)), sized: true})
		t.plain = append(t.plain, y.Name)
	}
	t.finish(0, linkEnd(img))
	return t
}

// openSymtab takes the symbol table of a file that was not stripped, or of a
// separate debug file: what a distribution's -dbg package holds. It is not
// mapped, so only a file has it.
func openSymtab(_ *Symbolizer, img *loader.Image) *table {
	end := linkEnd(img)
	return parseSymbols(img.Section(".symtab"), img.Section(".strtab"), end, end)
}

// openDebugData takes the symbols of functions that .dynsym does not list,
// which some distributions pack into the image.
func openDebugData(_ *Symbolizer, img *loader.Image) *table {
	packed := img.Section(".gnu_debugdata")
	if packed == nil {
		return nil
	}
	data, f, err := objfile.MiniDebugInfo(packed)
	if err != nil {
		return nil
	}
	// The packer leaves out what .dynsym has, but that was asked before.
	end := linkEnd(img)
	return parseSymbols(f.Section(data, ".symtab"), f.Section(data, ".strtab"), end, end)
}

// openDynsym takes the symbols that the dynamic linker uses.
func openDynsym(s *Symbolizer, img *loader.Image) *table {
	syms, strs := dynamicSymbols(s, img)
	return parseSymbols(syms, strs, unsizedReach, linkEnd(img))
}

// dynamicSymbols returns .dynsym and .dynstr: of the file, or, since they are
// mapped, of the process. A vDSO has no file, and a dump that createdump wrote
// may hold the pages.
func dynamicSymbols(s *Symbolizer, img *loader.Image) (syms, strs []byte) {
	return mapped(s, img, ".dynsym"), mapped(s, img, ".dynstr")
}

// maxMapped bounds a table that is read out of the process. That of LLVM, one
// of the largest libraries in use, has 1.2 MB of dynamic symbols.
const maxMapped = 64 << 20

// mapped returns a section that is mapped with the image.
func mapped(s *Symbolizer, img *loader.Image, name string) []byte {
	if b := img.Section(name); b != nil {
		return b
	}
	span, ok := img.Table(name)
	if !ok || span.Hi <= span.Lo || span.Hi-span.Lo > maxMapped {
		return nil
	}
	// A trim keeps the symbols that gave names, not the table.
	return s.proc.Memory.Untracked().View(span.Lo, int(span.Hi-span.Lo))
}

// linkEnd returns the link address that the image ends at.
func linkEnd(img *loader.Image) arch.LinkAddr {
	return arch.LinkAddr(uint64(img.Span().Hi) - img.Bias())
}
