package objfile

import (
	"debug/elf"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// An Image is an ELF or PE file laid out as it would be mapped, without a
// process: its bytes by address, and where its tables lie. It satisfies
// unwind.Image and [arch.Memory], so that the rules of its code can be looked up
// from the file alone:
//
//	img, err := objfile.NewImage(data, bias)
//	u := unwind.New(img.Arch().On(arch.Linux), img, []unwind.Image{img}, nil)
//	rule, by, outcome, why := u.RuleAt(pc)
//
// Its bytes are the file's own: no relocation is applied, and .bss has none. An
// Image is safe for concurrent use.
type Image struct {
	arch  *arch.Arch
	data  []byte
	bias  uint64
	span  arch.Span
	parts []part
	elf   *ELF // nil: a PE file
	pe    *PE
	ptrs  Pointers
}

// A part is a piece of the file that is mapped in one piece.
type part struct {
	arch.Span           // as far as the file has bytes for it
	mapped    arch.Span // to where it is mapped
	data      []byte
	exec      bool
}

// maxImage bounds how far the parts of an image may lie apart, in bytes.
const maxImage = 1 << 40

// NewImage lays out the file data with bias added to its link addresses; of a PE
// file, whose link addresses are RVAs, bias is the base. The error is a
// [*FormatError] or a [*bin.Error].
//
// Link addresses of libraries begin at 0. Where that matters, as to a caller
// that takes the lowest addresses for null pointers, a bias of a page or more is
// to be given.
func NewImage(data []byte, bias uint64) (*Image, error) {
	m := &Image{data: data, bias: bias}
	var err error
	if m.elf, err = ParseELF(data); err == nil {
		err = m.layELF()
	} else if m.pe, err = ParsePE(data); err == nil {
		err = m.layPE()
	} else {
		err = &FormatError{0, "neither an ELF nor a PE file"}
	}
	if err != nil {
		return nil, err
	}
	m.ptrs = Pointers{Mem: m, Word: m.arch.Word, Span: m.span, Bias: bias, Relocated: true}
	return m, nil
}

// layELF lays out the PT_LOAD segments.
func (m *Image) layELF() error {
	if m.arch = arch.ByMachine(m.elf.Machine); m.arch == nil {
		return &FormatError{18, fmt.Sprintf("a file for an unknown CPU (%v)", m.elf.Machine)}
	}
	for i := range m.elf.Progs {
		if p := &m.elf.Progs[i]; p.Type == elf.PT_LOAD && p.Memsz > 0 && p.Memsz < maxImage {
			m.lay(p.Vaddr, p.Memsz, p.Off, p.Filesz, p.Flags&elf.PF_X != 0)
		}
	}
	return m.laid()
}

// layPE lays out the headers and the sections.
func (m *Image) layPE() error {
	for _, a := range arch.All() {
		if m.pe.For(a) {
			m.arch = a
			break
		}
	}
	if m.arch == nil {
		return &FormatError{0, fmt.Sprintf("a file for an unknown CPU (machine %#x)", m.pe.Machine)}
	}
	m.lay(0, uint64(m.pe.HeadersSize), 0, uint64(m.pe.HeadersSize), false)
	for i := range m.pe.Sections {
		s := &m.pe.Sections[i]
		m.lay(uint64(s.VA), uint64(max(s.VSize, s.RawSize)), uint64(s.RawOff), uint64(s.RawSize), s.Characteristics&PEExecutable != 0)
	}
	m.span = arch.Span{Lo: arch.Addr(m.bias), Hi: max(m.span.Hi, arch.Addr(m.bias+uint64(m.pe.ImageSize)))}
	return m.laid()
}

// lay adds a part of size bytes at a link address, for which the file has n
// bytes at off, or fewer if it is cut.
func (m *Image) lay(at, size, off, n uint64, exec bool) {
	off = min(off, uint64(len(m.data)))
	n = min(n, uint64(len(m.data))-off)
	lo := arch.Addr(m.bias + at)
	p := part{arch.Span{Lo: lo, Hi: lo + arch.Addr(n)}, arch.Span{Lo: lo, Hi: lo + arch.Addr(max(size, n))}, m.data[off : off+n], exec}
	if p.mapped.Hi <= lo {
		return
	}
	if len(m.parts) == 0 {
		m.span = p.mapped
	}
	m.parts = append(m.parts, p)
	m.span.Lo, m.span.Hi = min(m.span.Lo, p.mapped.Lo), max(m.span.Hi, p.mapped.Hi)
}

// laid checks what was laid out.
func (m *Image) laid() error {
	if len(m.parts) == 0 || m.span.Hi-m.span.Lo > maxImage {
		return &FormatError{0, "a file that maps nothing"}
	}
	return nil
}

// Arch returns the CPU that the file is for.
func (m *Image) Arch() *arch.Arch { return m.arch }

// Span returns where the image lies.
func (m *Image) Span() arch.Span { return m.span }

// Bias returns what NewImage was given.
func (m *Image) Bias() uint64 { return m.bias }

// View returns the n bytes at a, or nil when the file does not have all of them
// in one part.
func (m *Image) View(a arch.Addr, n int) []byte {
	for i := range m.parts {
		if p := &m.parts[i]; p.Has(a) {
			return bin.Slice(p.data, uint64(a-p.Lo), uint64(n))
		}
	}
	return nil
}

// Word returns the 8 bytes at a as a little-endian number.
func (m *Image) Word(a arch.Addr) (v uint64, ok bool) { return u64(m, a) }

// Executable reports whether code at a can run, by the headers. known is false
// outside of the image.
func (m *Image) Executable(a arch.Addr) (exec, known bool) {
	for i := range m.parts {
		if p := &m.parts[i]; p.mapped.Has(a) {
			exec, known = exec || p.exec, true
		}
	}
	return exec, known
}

// Table returns where a table lies that is mapped. Of ELF, ".eh_frame_hdr" and
// ".eh_frame" are found by program headers, else they are sections as all others;
// of PE, ".pdata" is data directory 3.
func (m *Image) Table(name string) (arch.Span, bool) {
	if m.pe != nil {
		return m.peTable(name)
	}
	var s arch.Span
	ok := false
	switch name {
	case ".eh_frame_hdr":
		s, ok = m.ptrs.EhFrameHdr(m.elf.Progs)
	case ".eh_frame":
		s, ok = m.ptrs.EhFrame(m.elf.Progs)
	}
	secs := m.elf.Sections(m.data)
	for i := range secs {
		if ok {
			break
		}
		if h := &secs[i]; h.Name == name && h.Flags&elf.SHF_ALLOC != 0 {
			s, ok = m.within(h.Addr, h.Size)
		}
	}
	return s, ok
}

// peTable is Table of a PE file.
func (m *Image) peTable(name string) (arch.Span, bool) {
	if name == ".pdata" {
		d, ok := m.pe.Dir(PEExceptions)
		if !ok {
			return arch.Span{}, false
		}
		return m.within(uint64(d.RVA), uint64(d.Size))
	}
	if s := m.pe.Named(name); s != nil {
		return m.within(uint64(s.VA), uint64(s.VSize))
	}
	return arch.Span{}, false
}

// within returns where the n bytes at a link address lie, if in the image.
func (m *Image) within(at, n uint64) (arch.Span, bool) {
	lo := arch.Addr(m.bias + at)
	s := arch.Span{Lo: lo, Hi: lo + arch.Addr(n)}
	return s, n > 0 && s.Lo < s.Hi && s.Lo >= m.span.Lo && s.Hi <= m.span.Hi
}

// Section returns the bytes of a section, which need not be mapped, unpacked; nil
// if there is none.
func (m *Image) Section(name string) []byte {
	if m.elf != nil {
		return m.elf.Section(m.data, name)
	}
	return m.pe.Section(m.data, name)
}
