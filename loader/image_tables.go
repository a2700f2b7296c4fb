package loader

import (
	"debug/elf"
	"encoding/binary"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// Tags of a dynamic section (gABI chapter 5; DT_GNU_HASH and DT_RELACOUNT are GNU's).
const (
	dtHash    = 4
	dtStrtab  = 5
	dtSymtab  = 6
	dtRela    = 7
	dtRelaSz  = 8
	dtStrSz   = 10
	dtRelrSz  = 35
	dtRelr    = 36
	dtGNUHash = 0x6ffffef5

	dtRelaCount = 0x6ffffff9
)

// asked remembers what was asked of an image, for a trim: the tables that only
// a file's section headers told of, and the symbols that were looked up.
type asked struct {
	mu      sync.Mutex
	got     map[string]arch.Span
	lookups map[string]found
}

// found is what Lookup answers.
type found struct {
	at   arch.Addr
	size uint64
	ok   bool
}

// Table returns where in the process a table of the image lies that is mapped
// with it. Program headers tell of ".eh_frame_hdr" and, through it, of
// ".eh_frame", whose end is then that of its segment: a zero length ends the
// table itself. PE's ".pdata" is data directory 3. Everything else (".plt",
// ".plt.sec", ".text", ".dynsym") needs the section headers of the image's file.
func (m *Image) Table(name string) (arch.Span, bool) {
	if m.Format == "pe" {
		if name == ".pdata" {
			return m.Directory(objfile.PEExceptions)
		}
		h := m.peHead()
		if h == nil || m.Flat {
			return arch.Span{}, false
		}
		for i := range h.Sections {
			if s := &h.Sections[i]; s.Name == name {
				return m.within(m.bias+uint64(s.VA), uint64(s.VSize))
			}
		}
		return arch.Span{}, false
	}
	if name == ".eh_frame_hdr" || name == ".eh_frame" {
		if s, ok := m.ehFrame(name); ok {
			return s, ok
		}
	}
	if m.kept != nil {
		s, ok := m.kept.tables[name]
		if ok {
			return s, ok
		}
	}
	if m.src == nil || m.src.open() == nil {
		return arch.Span{}, false
	}
	for _, s := range m.src.secs() {
		if s.Name == name && s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 {
			span, ok := m.within(m.bias+s.Addr, s.Size)
			if ok {
				m.asked.mu.Lock()
				if m.asked.got == nil {
					m.asked.got = map[string]arch.Span{}
				}
				m.asked.got[name] = span
				m.asked.mu.Unlock()
			}
			return span, ok
		}
	}
	return arch.Span{}, false
}

// within returns the n bytes at a if they lie in the image.
func (m *Image) within(a, n uint64) (arch.Span, bool) {
	s := arch.Span{Lo: arch.Addr(a), Hi: arch.Addr(a + n)}
	return s, n > 0 && s.Lo < s.Hi && s.Lo >= m.span.Lo && s.Hi <= m.span.Hi
}

// ehFrame finds the tables of PT_GNU_EH_FRAME: .eh_frame_hdr begins with a
// version, three encodings, and the address of .eh_frame (LSB, chapter 10.6).
func (m *Image) ehFrame(name string) (arch.Span, bool) {
	progs := m.elfProgs()
	for _, p := range progs {
		if p.Type != elf.PT_GNU_EH_FRAME {
			continue
		}
		hdr, ok := m.within(m.bias+p.Vaddr, p.Memsz)
		if !ok || name == ".eh_frame_hdr" {
			return hdr, ok
		}
		b := m.mem.View(hdr.Lo, 4)
		at, ok := m.mem.encoded(hdr.Lo+4, hdr.Lo, b)
		if !ok {
			return arch.Span{}, false
		}
		for _, l := range progs {
			if s, ok := m.within(m.bias+l.Vaddr, l.Memsz); ok && l.Type == elf.PT_LOAD && s.Has(at) {
				return arch.Span{Lo: at, Hi: s.Hi}, true
			}
		}
	}
	return arch.Span{}, false
}

// encoded reads the eh_frame_ptr at a, of a header whose first 4 bytes are b:
// its encoding is relative to the place (0x10), to the header (0x30) or to
// nothing, of 4 or 8 bytes.
func (m *Memory) encoded(a, hdr arch.Addr, b []byte) (arch.Addr, bool) {
	if b == nil || b[0] != 1 {
		return 0, false
	}
	var v uint64
	switch b[1] & 0x0f {
	case 0x03, 0x0b: // udata4, sdata4
		w := m.View(a, 4)
		if w == nil {
			return 0, false
		}
		v = uint64(binary.LittleEndian.Uint32(w))
		if b[1]&0x0f == 0x0b {
			v = uint64(int64(int32(v)))
		}
	case 0x00, 0x04, 0x0c: // absptr, udata8, sdata8
		w, ok := m.Word(a)
		if !ok {
			return 0, false
		}
		v = w
	default:
		return 0, false
	}
	switch b[1] & 0x70 {
	case 0x10:
		v += uint64(a)
	case 0x30:
		v += uint64(hdr)
	case 0:
	default:
		return 0, false
	}
	return arch.Addr(v), true
}

// Directory returns where data directory n of a PE image lies in the process
// (Microsoft's PE format, "Optional Header Data Directories"; 14 is the CLR
// header).
func (m *Image) Directory(n int) (arch.Span, bool) {
	h := m.peHead()
	if h == nil {
		return arch.Span{}, false
	}
	d, ok := h.Dir(n)
	if !ok {
		return arch.Span{}, false
	}
	a, ok := m.At(arch.LinkAddr(d.RVA))
	if !ok {
		return arch.Span{}, false
	}
	return m.within(uint64(a), uint64(d.Size))
}

// At returns where in the process the byte lies that the linker put at l. Of a
// flat PE image it is where the file's bytes for that RVA lie.
func (m *Image) At(l arch.LinkAddr) (arch.Addr, bool) {
	if m.Flat {
		h := m.peHead()
		if h == nil || l > 1<<32-1 {
			return 0, false
		}
		off, _, ok := h.FileOff(uint32(l))
		a := arch.Addr(m.bias + uint64(off))
		return a, ok && m.span.Has(a)
	}
	a := arch.Addr(m.bias + uint64(l))
	return a, m.span.Has(a)
}

// dynamic returns the image's dynamic section as addresses in the process.
func (m *Image) dynamic() map[uint64]uint64 {
	m.dynOnce.Do(func() {
		m.dyn = map[uint64]uint64{}
		at := m.dynamicAt()
		if at == 0 {
			return
		}
		for range 512 {
			b := m.mem.Untracked().View(at, 16)
			if b == nil {
				// It lies in RELRO: where the dump lacks it, what the linker
				// wrote will do.
				if b = m.FileView(at, 16); b == nil {
					return
				}
			}
			tag, v := le64(b), le64(b[8:])
			if tag == 0 {
				return
			}
			// glibc adds the bias to addresses in place, musl does not.
			switch tag {
			case dtHash, dtGNUHash, dtStrtab, dtSymtab:
				if !m.span.Has(arch.Addr(v)) {
					v += m.bias
				}
			}
			m.dyn[tag] = v
			at += 16
		}
	})
	return m.dyn
}

// Lookup returns where a symbol of the dynamic symbol table lies, and its
// size: through the hash table that the dynamic linker uses, a few words each
// time. Of PE it looks in the export table, where no sizes are. ok is false
// when there is no such symbol, or what tells of it is missing.
//
// A trimmed core keeps the answer instead of the pages that led to it.
func (m *Image) Lookup(name string) (a arch.Addr, size uint64, ok bool) {
	f, kept := found{}, false
	if m.kept != nil {
		f, kept = m.kept.lookups[name]
	}
	if !kept {
		f.at, f.size, f.ok = m.lookup(m.mem.Untracked(), name)
	}
	m.asked.mu.Lock()
	defer m.asked.mu.Unlock()
	if m.asked.lookups == nil {
		m.asked.lookups = map[string]found{}
	}
	m.asked.lookups[name] = f
	return f.at, f.size, f.ok
}

// lookup is Lookup, reading from mem.
func (m *Image) lookup(mem *Memory, name string) (a arch.Addr, size uint64, ok bool) {
	if m.Format == "pe" {
		return m.export(mem, name)
	}
	d := m.dynamic()
	sym, str := d[dtSymtab], d[dtStrtab]
	if sym == 0 || str == 0 {
		return 0, 0, false
	}
	look := symbolLookup{mem, sym, str, d[dtStrSz], name}
	var i uint32
	if h := d[dtGNUHash]; h != 0 {
		i, ok = look.gnuHash(h)
	} else if h := d[dtHash]; h != 0 {
		i, ok = look.sysvHash(h)
	}
	if !ok {
		return 0, 0, false
	}
	b := mem.View(arch.Addr(sym+uint64(i)*24), 24)
	if b == nil {
		return 0, 0, false
	}
	return arch.Addr(m.bias + le64(b[8:])), le64(b[16:]), true
}

// A symbolLookup looks for one name in hash tables that lie in memory.
type symbolLookup struct {
	mem      *Memory
	sym, str uint64
	strsz    uint64
	name     string
}

// maxChain bounds how long a hash chain of a broken table may be.
const maxChain = 1 << 16

func (l *symbolLookup) u32(a uint64) (uint32, bool) {
	b := l.mem.View(arch.Addr(a), 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// gnuHash reads DT_GNU_HASH: counts, a Bloom filter that turns most misses
// away, buckets, and chains of hashes whose lowest bit ends the chain.
func (l *symbolLookup) gnuHash(at uint64) (uint32, bool) {
	b := l.mem.View(arch.Addr(at), 16)
	if b == nil {
		return 0, false
	}
	nbuckets, first := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	nbloom, shift := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if nbuckets == 0 || nbloom == 0 {
		return 0, false
	}
	h := uint32(5381)
	for i := range len(l.name) {
		h = h*33 + uint32(l.name[i])
	}
	bloom, ok := l.mem.Word(arch.Addr(at + 16 + uint64(h/64%nbloom)*8))
	if !ok || bloom>>(h%64)&1 == 0 || bloom>>(h>>(shift%32)%64)&1 == 0 {
		return 0, false
	}
	buckets := at + 16 + 8*uint64(nbloom)
	i, ok := l.u32(buckets + 4*uint64(h%nbuckets))
	if !ok || i < first {
		return 0, false
	}
	chains := buckets + 4*uint64(nbuckets)
	for range maxChain {
		c, ok := l.u32(chains + 4*uint64(i-first))
		if !ok {
			return 0, false
		}
		if c|1 == h|1 && l.is(i) {
			return i, true
		}
		if c&1 != 0 {
			return 0, false
		}
		i++
	}
	return 0, false
}

// sysvHash reads DT_HASH: counts, buckets, and a list of next indices.
func (l *symbolLookup) sysvHash(at uint64) (uint32, bool) {
	nbuckets, ok := l.u32(at)
	if !ok || nbuckets == 0 {
		return 0, false
	}
	h := uint32(0)
	for i := range len(l.name) {
		h = h<<4 + uint32(l.name[i])
		h = (h ^ h>>24&0xf0) &^ 0xf0000000
	}
	i, ok := l.u32(at + 8 + 4*uint64(h%nbuckets))
	for n := 0; ok && i != 0 && n < maxChain; n++ {
		if l.is(i) {
			return i, true
		}
		i, ok = l.u32(at + 8 + 4*uint64(nbuckets) + 4*uint64(i))
	}
	return 0, false
}

// is reports whether symbol i has the name and is defined here.
func (l *symbolLookup) is(i uint32) bool {
	b := l.mem.View(arch.Addr(l.sym+uint64(i)*24), 24)
	if b == nil || binary.LittleEndian.Uint16(b[6:]) == 0 { // st_shndx is SHN_UNDEF
		return false
	}
	off := uint64(binary.LittleEndian.Uint32(b))
	if l.strsz != 0 && off >= l.strsz {
		return false
	}
	s := l.mem.View(arch.Addr(l.str+off), len(l.name)+1)
	return s != nil && string(s[:len(l.name)]) == l.name && s[len(l.name)] == 0
}

// export searches the export table of a PE image, whose names are sorted.
func (m *Image) export(mem *Memory, name string) (a arch.Addr, size uint64, ok bool) {
	d, ok := m.Directory(objfile.PEExports)
	if !ok || m.Flat {
		return 0, 0, false
	}
	b := mem.View(d.Lo, 40)
	if b == nil {
		return 0, 0, false
	}
	u32 := func(rva uint64) (uint32, bool) {
		l := symbolLookup{mem: mem}
		return l.u32(m.bias + rva)
	}
	nfuncs, nnames := binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:])
	funcs, names, ords := uint64(binary.LittleEndian.Uint32(b[28:])), uint64(binary.LittleEndian.Uint32(b[32:])), uint64(binary.LittleEndian.Uint32(b[36:]))
	lo, hi := uint64(0), uint64(nnames)
	for lo < hi {
		k := (lo + hi) / 2
		rva, ok := u32(names + 4*k)
		if !ok {
			return 0, 0, false
		}
		got, ok := mem.text(arch.Addr(m.bias + uint64(rva)))
		switch {
		case !ok:
			return 0, 0, false
		case got < name:
			lo = k + 1
		case got > name:
			hi = k
		default:
			o := mem.View(arch.Addr(m.bias+ords+2*k), 2)
			if o == nil || uint32(binary.LittleEndian.Uint16(o)) >= nfuncs {
				return 0, 0, false
			}
			f, ok := u32(funcs + 4*uint64(binary.LittleEndian.Uint16(o)))
			return arch.Addr(m.bias + uint64(f)), 0, ok
		}
	}
	return 0, 0, false
}
