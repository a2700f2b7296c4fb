package objfile

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/seamwalk/seam/internal/bin"
)

// A Rela is an Elf64_Rela (gABI, chapter 4, "Relocation").
type Rela struct {
	At     uint64 // link address of what is relocated
	Type   uint32 // by the CPU's ABI
	Sym    uint32 // index in the symbol table, 0 if there is none
	Addend uint64
}

// ParseRela reads the relocation that b begins with, of RelaSize bytes.
func ParseRela(b []byte) Rela {
	_ = b[RelaSize-1]
	return Rela{At: le64(b), Type: le32(b[8:]), Sym: le32(b[12:]), Addend: le64(b[16:])}
}

// Relocations are those of a file that add the image's bias to a word.
type Relocations struct {
	list []relocation // by address
	// rela is a table of Elf64_Rela in the file that is in order of address as
	// it is, as linkers write it: libcoreclr has 18,000 entries, and the few
	// that are asked for are found in place.
	rela []byte
	// Missing says that the file ends before its relocations do: then no bytes
	// are known as they were once the image had been loaded.
	Missing bool
}

// A relocation makes the 8 bytes at link address at become addend + bias.
type relocation struct {
	at, addend uint64
}

// Len returns how many there are.
func (r *Relocations) Len() int { return len(r.list) + len(r.rela)/RelaSize }

// relaAt reads the i-th entry of a table of Elf64_Rela.
func relaAt(rela []byte, i int) relocation {
	return relocation{le64(rela[i*RelaSize:]), le64(rela[i*RelaSize+16:])}
}

// Apply applies the relocations that meet the bytes b at link address at, of an
// image with the bias.
func (r *Relocations) Apply(at uint64, b []byte, bias uint64) {
	end := at + uint64(len(b))
	apply := func(x relocation) {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], x.addend+bias)
		for k, v := range w {
			if o := x.at + uint64(k) - at; o < uint64(len(b)) {
				b[o] = v
			}
		}
	}
	n := len(r.rela) / RelaSize
	for i := sort.Search(n, func(i int) bool { return relaAt(r.rela, i).at+7 >= at }); i < n && relaAt(r.rela, i).at < end; i++ {
		apply(relaAt(r.rela, i))
	}
	n = len(r.list)
	for i := sort.Search(n, func(i int) bool { return r.list[i].at+7 >= at }); i < n && r.list[i].at < end; i++ {
		apply(r.list[i])
	}
}

// maxDynamicSize bounds a dynamic section in a file, in bytes.
const maxDynamicSize = maxDynamic * 16

// Relocations reads DT_RELA and DT_RELR of the file.
func (f *ELF) Relocations(data []byte) *Relocations {
	tags := map[elf.DynTag]uint64{}
	for i := range f.Progs {
		p := &f.Progs[i]
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		section := bin.Slice(data, p.Off, min(p.Filesz, maxDynamicSize))
		if section == nil {
			return &Relocations{Missing: true}
		}
		clear(tags)
		for tag, v := range Dynamic(Bytes(section), 0) {
			tags[tag] = v
		}
	}
	// The first DT_RELACOUNT entries are the ones that only add the bias:
	// linkers sort them so, and dynamic linkers rely on it. Their type is a
	// number of its own on every CPU, which need not be known here.
	rela, relr := f.Linked(data, tags[elf.DT_RELA], tags[elf.DT_RELASZ]), f.Linked(data, tags[dtRelr], tags[dtRelrSz])
	if rela == nil && tags[elf.DT_RELASZ] > 0 || relr == nil && tags[dtRelrSz] > 0 {
		return &Relocations{Missing: true}
	}
	r := &Relocations{rela: rela[:min(tags[dtRelaCount], uint64(len(rela)/RelaSize))*RelaSize]}
	if !inOrder(r.rela) {
		for i := range len(r.rela) / RelaSize {
			r.list = append(r.list, relaAt(r.rela, i))
		}
		r.rela = nil
	}
	r.addPacked(f, data, relr)
	slices.SortFunc(r.list, func(a, b relocation) int { return cmp.Compare(a.at, b.at) })
	return r
}

// inOrder reports whether a table of Elf64_Rela is sorted by address.
func inOrder(rela []byte) bool {
	last := uint64(0)
	for i := 0; i+RelaSize <= len(rela); i += RelaSize {
		at := le64(rela[i:])
		if at < last {
			return false
		}
		last = at
	}
	return true
}

// addPacked adds the relocations of DT_RELR (gABI, "Relative relocations"): an
// even entry is an address, an odd one has a bit for each of the 63 words that
// follow. The addend is what lies there. Each is of a word of its own, so there
// are no more than words in the file.
func (r *Relocations) addPacked(f *ELF, data, relr []byte) {
	words := len(data) / 8
	add := func(at uint64) {
		if w := f.Linked(data, at, 8); w != nil && len(r.list) < words {
			r.list = append(r.list, relocation{at, le64(w)})
		}
	}
	for next := uint64(0); len(relr) >= 8; relr = relr[8:] {
		e := le64(relr)
		if e&1 == 0 {
			add(e)
			next = e + 8
			continue
		}
		for k := uint64(0); k < 63; k++ {
			if e>>(k+1)&1 != 0 {
				add(next + 8*k)
			}
		}
		next += 63 * 8
	}
}

// peDir64 is IMAGE_REL_BASED_DIR64: the bias is added to 8 bytes.
const peDir64 = 10

// Relocations reads the base relocations of the PE file that data begins with:
// blocks of a page's RVA, a size, and 16-bit entries whose upper 4 bits are the
// kind (PE format, "The .reloc Section"). A ReadyToRun image's are small.
func (h *PE) Relocations(data []byte) *Relocations {
	r := &Relocations{}
	d, ok := h.Dir(PERelocs)
	if !ok {
		return r
	}
	off, n, ok := h.FileOff(d.RVA)
	if !ok {
		return r
	}
	b := bin.Slice(data, uint64(off), uint64(min(d.Size, n)))
	for len(b) >= 8 {
		page, size := le32(b), le32(b[4:])
		if size < 8 || uint64(size) > uint64(len(b)) {
			break
		}
		for e := b[8:size]; len(e) >= 2; e = e[2:] {
			v := le16(e)
			if v>>12 != peDir64 {
				continue
			}
			rva := uint64(page) + uint64(v&0xfff)
			if o, _, ok := h.FileOff(uint32(rva)); ok && rva < 1<<32 {
				if w := bin.Slice(data, uint64(o), 8); w != nil {
					r.list = append(r.list, relocation{rva, le64(w) - h.Base})
				}
			}
		}
		b = b[size:]
	}
	slices.SortFunc(r.list, func(a, b relocation) int { return cmp.Compare(a.at, b.at) })
	return r
}
