package objfile

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
)

// A Symbol is an entry of an ELF symbol table (gABI, chapter 4, "Symbol Table").
type Symbol struct {
	Name  uint32 // offset in the string table
	Info  uint8
	Shndx elf.SectionIndex
	Value uint64 // link address
	Size  uint64 // in bytes, 0 if it is not known
}

// ParseSymbol reads the symbol that b begins with, of SymSize bytes.
func ParseSymbol(b []byte) Symbol {
	_ = b[SymSize-1]
	return Symbol{Name: le32(b), Info: b[4], Shndx: elf.SectionIndex(le16(b[6:])), Value: le64(b[8:]), Size: le64(b[16:])}
}

// Type returns what the symbol stands for.
func (s *Symbol) Type() elf.SymType { return elf.SymType(s.Info & 15) }

// Bind returns whether the symbol is local, global or weak.
func (s *Symbol) Bind() elf.SymBind { return elf.SymBind(s.Info >> 4) }

// DynSymbols says where the dynamic symbol table of a mapped ELF image lies, and
// the hash table that the dynamic linker finds symbols with. An address is 0
// where the image has no such table.
type DynSymbols struct {
	Symbols, Strings arch.Addr
	StringsSize      uint64 // in bytes, 0 if it is not known
	GNUHash, Hash    arch.Addr
}

// FindDynSymbols takes the tables from the dynamic section at a of an image
// that is mapped at span with the bias. glibc adds the bias to the addresses in
// place, musl does not.
func FindDynSymbols(r Reader, a arch.Addr, span arch.Span, bias uint64) (d DynSymbols) {
	for tag, v := range Dynamic(r, a) {
		at := arch.Addr(v)
		if !span.Has(at) {
			at += arch.Addr(bias)
		}
		switch tag {
		case elf.DT_SYMTAB:
			d.Symbols = at
		case elf.DT_STRTAB:
			d.Strings = at
		case elf.DT_STRSZ:
			d.StringsSize = v
		case elf.DT_GNU_HASH:
			d.GNUHash = at
		case elf.DT_HASH:
			d.Hash = at
		}
	}
	return d
}

// Lookup returns the symbol of the name that is defined in the image, through
// the hash table: a few words of r. ok is false when there is no such symbol, or
// when bytes that lead to it are missing.
func (d *DynSymbols) Lookup(r Reader, name string) (s Symbol, ok bool) {
	if d.Symbols == 0 || d.Strings == 0 {
		return Symbol{}, false
	}
	l := symbolLookup{d, r, name}
	switch {
	case d.GNUHash != 0:
		return l.gnuHash(d.GNUHash)
	case d.Hash != 0:
		return l.sysvHash(d.Hash)
	}
	return Symbol{}, false
}

// A symbolLookup looks for one name.
type symbolLookup struct {
	*DynSymbols
	r    Reader
	name string
}

// maxChain bounds how long a hash chain of a broken table may be.
const maxChain = 1 << 16

// gnuHash reads DT_GNU_HASH: counts, a Bloom filter that turns most misses
// away, buckets, and chains of hashes whose lowest bit ends the chain.
func (l *symbolLookup) gnuHash(at arch.Addr) (s Symbol, ok bool) {
	b := l.r.View(at, 16)
	if b == nil {
		return s, false
	}
	nbuckets, first, nbloom, shift := le32(b), le32(b[4:]), le32(b[8:]), le32(b[12:])
	if nbuckets == 0 || nbloom == 0 {
		return s, false
	}
	h := uint32(5381)
	for i := range len(l.name) {
		h = h*33 + uint32(l.name[i])
	}
	bloom, ok := u64(l.r, at+16+arch.Addr(h/64%nbloom)*8)
	if !ok || bloom>>(h%64)&1 == 0 || bloom>>(h>>(shift%32)%64)&1 == 0 {
		return s, false
	}
	buckets := at + 16 + 8*arch.Addr(nbloom)
	i, ok := u32(l.r, buckets+4*arch.Addr(h%nbuckets))
	if !ok || i < first {
		return s, false
	}
	chains := buckets + 4*arch.Addr(nbuckets)
	for range maxChain {
		c, ok := u32(l.r, chains+4*arch.Addr(i-first))
		if !ok {
			return s, false
		}
		if c|1 == h|1 {
			if s, ok := l.named(i); ok {
				return s, true
			}
		}
		if c&1 != 0 {
			return s, false
		}
		i++
	}
	return s, false
}

// sysvHash reads DT_HASH: counts, buckets, and a list of next indices.
func (l *symbolLookup) sysvHash(at arch.Addr) (s Symbol, ok bool) {
	nbuckets, ok := u32(l.r, at)
	if !ok || nbuckets == 0 {
		return s, false
	}
	h := uint32(0)
	for i := range len(l.name) {
		h = h<<4 + uint32(l.name[i])
		h = (h ^ h>>24&0xf0) &^ 0xf0000000
	}
	i, ok := u32(l.r, at+8+4*arch.Addr(h%nbuckets))
	for n := 0; ok && i != 0 && n < maxChain; n++ {
		if s, ok := l.named(i); ok {
			return s, true
		}
		i, ok = u32(l.r, at+8+4*arch.Addr(nbuckets)+4*arch.Addr(i))
	}
	return s, false
}

// named returns symbol i if it has the name and is defined in the image.
func (l *symbolLookup) named(i uint32) (s Symbol, ok bool) {
	b := l.r.View(l.Symbols+arch.Addr(i)*SymSize, SymSize)
	if b == nil {
		return s, false
	}
	s = ParseSymbol(b)
	if s.Shndx == elf.SHN_UNDEF || l.StringsSize != 0 && uint64(s.Name) >= l.StringsSize {
		return s, false
	}
	name := l.r.View(l.Strings+arch.Addr(s.Name), len(l.name)+1)
	return s, name != nil && string(name[:len(l.name)]) == l.name && name[len(l.name)] == 0
}
