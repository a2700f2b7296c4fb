package loader

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A relocation is one that adds the bias: 8 bytes at link address at become
// addend + bias.
type relocation struct {
	at, addend uint64
}

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
	var b []byte
	if m.Format == "elf" {
		b = m.elfLinkTime(uint64(a)-m.bias, n)
	} else {
		b = m.peLinkTime(a, n)
	}
	if b == nil {
		return nil
	}
	m.relOnce.Do(func() {
		if m.Format == "elf" {
			m.rels = m.elfRelocations()
		} else if !m.Flat {
			m.rels.list = m.peRelocations()
		}
	})
	if m.rels.missing {
		return nil
	}
	m.relocate(uint64(a)-m.bias, b)
	if m.mem.track != nil {
		m.mem.track.linkTime(m, a, b)
	}
	return b
}

// elfLinkTime returns a copy of the n bytes at link address at.
func (m *Image) elfLinkTime(at uint64, n int) []byte {
	for _, p := range m.src.progs {
		if p.Type != elf.PT_LOAD || at < p.Vaddr || at-p.Vaddr > p.Memsz || uint64(n) > p.Memsz-(at-p.Vaddr) {
			continue
		}
		b := make([]byte, n)
		if o := at - p.Vaddr; o < p.Filesz {
			k := min(uint64(n), p.Filesz-o)
			f := bin.Slice(m.src.bytes(), p.Off+o, k)
			if f == nil {
				return nil
			}
			copy(b, f)
		}
		return b
	}
	return nil
}

// peLinkTime returns a copy of the n bytes at a of a PE image.
func (m *Image) peLinkTime(a arch.Addr, n int) []byte {
	h := m.peHead()
	if h == nil || uint64(a) < m.bias || uint64(a)-m.bias > 1<<32-1 {
		return nil
	}
	off, have := uint64(a)-m.bias, uint64(n)
	if !m.Flat {
		o, k, ok := h.FileOff(uint32(off))
		if !ok {
			return nil
		}
		off, have = uint64(o), uint64(k)
	}
	f := bin.Slice(m.src.bytes(), m.shift+off, uint64(n))
	if f == nil || have < uint64(n) {
		return nil
	}
	return append([]byte(nil), f...)
}

// relocations are those of one image.
type relocations struct {
	list []relocation // by address
	// rela is a table of Elf64_Rela in the mapped file that is in order of
	// address as it is, as linkers write it: libcoreclr has 18,000 entries,
	// and the few that are asked for are found in place.
	rela []byte
	// missing says that the file ends before its relocations do: then no bytes
	// are known as they were once the image had been loaded.
	missing bool
}

// relaSize is the size of an Elf64_Rela: address, type and symbol, addend.
const relaSize = 24

// relaAt reads the i-th entry of a table of Elf64_Rela.
func relaAt(rela []byte, i int) relocation {
	return relocation{le64(rela[i*relaSize:]), le64(rela[i*relaSize+16:])}
}

// relocate applies the relocations that meet the bytes b at link address at.
func (m *Image) relocate(at uint64, b []byte) {
	end := at + uint64(len(b))
	apply := func(r relocation) {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], r.addend+m.bias)
		for k, v := range w {
			if o := r.at + uint64(k) - at; o < uint64(len(b)) {
				b[o] = v
			}
		}
	}
	list, rela := m.rels.list, m.rels.rela
	n := len(rela) / relaSize
	for i := sort.Search(n, func(i int) bool { return relaAt(rela, i).at+7 >= at }); i < n && relaAt(rela, i).at < end; i++ {
		apply(relaAt(rela, i))
	}
	for i := sort.Search(len(list), func(i int) bool { return list[i].at+7 >= at }); i < len(list) && list[i].at < end; i++ {
		apply(list[i])
	}
}

// elfRelocations reads DT_RELA and DT_RELR of the file, by address.
func (m *Image) elfRelocations() relocations {
	s := m.src
	var dyn []byte
	for _, p := range s.progs {
		if p.Type == elf.PT_DYNAMIC {
			if dyn = bin.Slice(s.bytes(), p.Off, min(p.Filesz, 1<<16)); dyn == nil {
				return relocations{missing: true}
			}
		}
	}
	tags := map[uint64]uint64{}
	for i := 0; i+16 <= len(dyn) && le64(dyn[i:]) != 0; i += 16 {
		tags[le64(dyn[i:])] = le64(dyn[i+8:])
	}
	var out []relocation
	// The first DT_RELACOUNT entries are the ones that only add the bias:
	// linkers sort them so, and dynamic linkers rely on it. Their type is a
	// number of its own on every CPU, which need not be known here.
	rela, relr := s.linked(tags[dtRela], tags[dtRelaSz]), s.linked(tags[dtRelr], tags[dtRelrSz])
	if rela == nil && tags[dtRelaSz] > 0 || relr == nil && tags[dtRelrSz] > 0 {
		return relocations{missing: true}
	}
	rela = rela[:min(tags[dtRelaCount], uint64(len(rela)/relaSize))*relaSize]
	sorted, last := true, uint64(0)
	for i := 0; i+relaSize <= len(rela); i += relaSize {
		at := le64(rela[i:])
		sorted = sorted && last <= at
		last = at
	}
	if !sorted {
		for i := range len(rela) / relaSize {
			out = append(out, relaAt(rela, i))
		}
		rela = nil
	}
	// DT_RELR (gABI, "Relative relocations"): an even entry is an address, an
	// odd one has a bit for each of the 63 words that follow. The addend is
	// what lies there.
	// Each is of a word of its own, so there are no more than words in the file.
	words := len(s.bytes()) / 8
	add := func(at uint64) {
		if w := s.linked(at, 8); w != nil && len(out) < words {
			out = append(out, relocation{at, le64(w)})
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
	slices.SortFunc(out, func(a, b relocation) int { return cmp.Compare(a.at, b.at) })
	return relocations{list: out, rela: rela}
}

// linked returns the n bytes of the file that go to link address at, or nil.
func (s *source) linked(at, n uint64) []byte {
	for _, p := range s.progs {
		if p.Type == elf.PT_LOAD && at >= p.Vaddr && at-p.Vaddr < p.Filesz && n <= p.Filesz-(at-p.Vaddr) {
			return bin.Slice(s.bytes(), p.Off+(at-p.Vaddr), n)
		}
	}
	return nil
}

// peRelocations reads the base relocations of the file: blocks of a page's
// RVA, a size, and 16-bit entries whose upper 4 bits are 10 for 8 bytes (PE
// format, "The .reloc Section"). A ReadyToRun image's are small.
func (m *Image) peRelocations() []relocation {
	h := m.peHead()
	d, ok := h.Dir(objfile.PERelocs)
	if !ok {
		return nil
	}
	off, n, ok := h.FileOff(d.RVA)
	if !ok {
		return nil
	}
	b := bin.Slice(m.src.bytes(), m.shift+uint64(off), uint64(min(d.Size, n)))
	var out []relocation
	for len(b) >= 8 {
		page, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if size < 8 || uint64(size) > uint64(len(b)) {
			break
		}
		for e := b[8:size]; len(e) >= 2; e = e[2:] {
			v := binary.LittleEndian.Uint16(e)
			if v>>12 != 10 {
				continue
			}
			rva := uint64(page) + uint64(v&0xfff)
			if o, _, ok := h.FileOff(uint32(rva)); ok && rva < 1<<32 {
				if w := bin.Slice(m.src.bytes(), m.shift+uint64(o), 8); w != nil {
					out = append(out, relocation{rva, le64(w) - h.Base})
				}
			}
		}
		b = b[size:]
	}
	slices.SortFunc(out, func(a, b relocation) int { return cmp.Compare(a.at, b.at) })
	return out
}
