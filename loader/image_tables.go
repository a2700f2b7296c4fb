package loader

import (
	"debug/elf"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// asked remembers what was asked of an image, for a trim: the tables that only
// a file's section headers have, and the symbols that were looked up.
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
// with it. Program headers lead to ".eh_frame_hdr" and, through it, to
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
		if s := h.Named(name); s != nil {
			return m.within(m.bias+uint64(s.VA), uint64(s.VSize))
		}
		return arch.Span{}, false
	}
	switch name {
	case ".eh_frame_hdr":
		if s, ok := m.pointers().EhFrameHdr(m.elfProgs()); ok {
			return s, ok
		}
	case ".eh_frame":
		if s, ok := m.pointers().EhFrame(m.elfProgs()); ok {
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
	for _, s := range m.src.elf.Sections(m.src.bytes()) {
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

// pointers returns what decodes the pointers of .eh_frame_hdr.
func (m *Image) pointers() *objfile.Pointers {
	return &objfile.Pointers{Mem: m.mem, Word: m.arch.Word, Span: m.span, Bias: m.bias, Relocated: true}
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

// dynSymbols returns where the image's dynamic symbol table lies.
func (m *Image) dynSymbols() *objfile.DynSymbols {
	m.dynOnce.Do(func() {
		m.dyn = objfile.DynSymbols{}
		if at := m.dynamicAt(); at != 0 {
			m.dyn = objfile.FindDynSymbols(linkedMemory{m}, at, m.span, m.bias)
		}
	})
	return &m.dyn
}

// A linkedMemory is the memory of the process, and, where the dump lacks bytes of
// the image, what the linker wrote there: the dynamic section lies in memory that
// is written to only while the image is loaded (RELRO).
type linkedMemory struct{ m *Image }

func (l linkedMemory) View(a arch.Addr, n int) []byte {
	if b := l.m.mem.Untracked().View(a, n); b != nil {
		return b
	}
	return l.m.FileView(a, n)
}

// Lookup returns where a symbol of the dynamic symbol table lies, and its
// size: through the hash table that the dynamic linker uses, a few words each
// time. Of PE it looks in the export table, where no sizes are. ok is false
// when there is no such symbol, or when bytes that lead to it are missing.
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
	m.answered(name, f)
	return f.at, f.size, f.ok
}

// answered notes for a trim where the symbol of a name lies.
func (m *Image) answered(name string, f found) {
	m.asked.mu.Lock()
	defer m.asked.mu.Unlock()
	if m.asked.lookups == nil {
		m.asked.lookups = map[string]found{}
	}
	m.asked.lookups[name] = f
}

// lookup is Lookup, reading from mem.
func (m *Image) lookup(mem *Memory, name string) (a arch.Addr, size uint64, ok bool) {
	if m.Format == "pe" {
		return m.export(mem, name)
	}
	s, ok := m.dynSymbols().Lookup(mem, name)
	if !ok {
		return 0, 0, false
	}
	return arch.Addr(m.bias + s.Value), s.Size, true
}

// export looks in the export table of a PE image.
func (m *Image) export(mem *Memory, name string) (a arch.Addr, size uint64, ok bool) {
	d, ok := m.Directory(objfile.PEExports)
	if !ok || m.Flat {
		return 0, 0, false
	}
	rva, ok := objfile.Export(mem, arch.Addr(m.bias), d.Lo, name)
	return arch.Addr(m.bias + uint64(rva)), 0, ok
}
