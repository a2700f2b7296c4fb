package loader

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// An ImageID is what tells two builds of one file apart. A field that the
// dump does not give is zero.
type ImageID struct {
	Name      string // file name without folders
	BuildID   string // ELF: the NT_GNU_BUILD_ID in hex
	Timestamp uint32 // PE: IMAGE_FILE_HEADER.TimeDateStamp
	Size      uint32 // PE: IMAGE_OPTIONAL_HEADER.SizeOfImage
	MVID      string // PE with metadata: module version id, a GUID in upper-case hex
}

// An Image is an ELF or PE file mapped into the process.
type Image struct {
	ID     ImageID
	Path   string // as the dump has it; "" when it has none. Of an assembly in a single-file bundle: the bundle's
	Format string // "elf" or "pe"
	// Flat says that a PE image is mapped as its file is, not section by
	// section: CoreCLR maps each assembly so for its metadata, and a second
	// time section by section when it has ReadyToRun code.
	Flat bool

	span arch.Span
	bias uint64

	mem   *Memory
	arch  *arch.Arch
	maps  []fileMap      // what NT_FILE says of it; empty for images of the link map
	progs []objfile.Prog // ELF: from the dump's header page; nil when that is not there
	pe    *objfile.PE    // PE: from the dump's header page
	dynAt arch.Addr      // ELF: where the link map says PT_DYNAMIC lies, or 0
	shift uint64         // where in its file the image begins: not 0 in a single-file bundle
	src   *source        // its file; nil for the vDSO, which has none
	copy  bool           // ELF: a second mapping of a part of a program, without headers or tables

	servedOnce bin.Once
	ranges     []fileMap // what is taken from the file where the dump has nothing
	dynOnce    bin.Once
	dyn        map[uint64]uint64
	relOnce    bin.Once
	rels       relocations
	kept       *keptImage // of a trimmed core, else nil
	asked      asked
}

// Span returns where the image lies, from its first mapped byte to its last.
func (m *Image) Span() arch.Span { return m.span }

// Bias returns what was added to the image's link addresses to get addresses
// in the process; for PE it is the base, link addresses being RVAs (of a Flat
// one they are not: ask Directory).
func (m *Image) Bias() uint64 { return m.bias }

// Bytes says where the bytes of the image come from: "dump" when the dump
// holds them, "file" when (some of) them came from a file of the same
// identity, "none" when there are none. It does not look for a file that was
// not needed so far; [Image.File] does.
func (m *Image) Bytes() string {
	if m.src != nil && m.src.opened.Load() && m.src.mapped != nil {
		return "file"
	}
	if i := m.mem.segAfter(m.span.Lo); i < len(m.mem.segs) && m.mem.segs[i].lo < m.span.Hi {
		return "dump"
	}
	return "none"
}

// File looks for the image's file and returns its path. When there is none it
// returns "" and why: [ImageNotFound] or [ImageDiffers], the latter with a
// sentence that names the file and both identities.
func (m *Image) File() (path string, why Absence, text string) {
	if m.src == nil {
		return "", ImageNotFound, ""
	}
	m.src.open()
	return m.src.file, m.src.state, m.src.refused
}

// Verified reports whether the file that stands in for the image is known to
// be the same build (by build-id, or by timestamp and size). It is false for a
// file that merely agrees with all that the dump holds, and without a file.
func (m *Image) Verified() bool {
	if m.src == nil {
		return false
	}
	m.src.open()
	return m.src.verified
}

// served returns the file's bytes from a on, or nil.
func (m *Image) served(a arch.Addr) []byte {
	if m.src == nil || m.src.open() == nil {
		return nil
	}
	m.servedOnce.Do(func() { m.ranges = m.readOnly() })
	for i := range m.ranges {
		if r := &m.ranges[i]; r.Has(a) {
			// An offset that was claimed may lie before the file (above 2^63)
			// or behind it.
			data, off := m.src.bytes(), r.off+uint64(a-r.Lo)
			if off >= uint64(len(data)) {
				return nil
			}
			data = data[off:]
			return data[:min(uint64(r.Hi-a), uint64(len(data)))]
		}
	}
	return nil
}

// absent says why the byte at a, in the image and not in the dump, is not at hand.
func (m *Image) absent(a arch.Addr) Absence {
	if m.kept != nil && m.src.open() == nil {
		// As it was when the core was trimmed.
		return m.kept.absent(m, a)
	}
	if m.src == nil || m.writable(a) {
		return NotDumped
	}
	if m.src.open() == nil {
		return m.src.state
	}
	m.servedOnce.Do(func() { m.ranges = m.readOnly() })
	for i := range m.ranges {
		if m.ranges[i].Has(a) {
			return ImageCut
		}
	}
	return NotDumped
}

// elfProgs returns the program headers: the dump's, else the file's.
func (m *Image) elfProgs() []objfile.Prog {
	if m.progs != nil || m.Format != "elf" || m.src == nil || m.src.open() == nil {
		return m.progs
	}
	return m.src.progs
}

// peHead returns the PE headers: the dump's, else the file's.
func (m *Image) peHead() *objfile.PE {
	if m.pe != nil || m.Format != "pe" || m.src == nil || m.src.open() == nil {
		return m.pe
	}
	return m.src.peAt(m.shift)
}

// writable reports whether the process could write to the page at a, by the
// headers that are at hand. RELRO counts as writable: the loader wrote to it.
func (m *Image) writable(a arch.Addr) bool {
	if m.Format == "elf" {
		for _, p := range m.elfProgs() {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 && pageSpan(m.bias+p.Vaddr, p.Memsz).Has(a) {
				return true
			}
		}
		return false
	}
	h := m.peHead()
	if m.Flat || h == nil {
		return false
	}
	for i := range h.Sections {
		if s := &h.Sections[i]; s.Characteristics&objfile.PEWritable != 0 && pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize))).Has(a) {
			d, ok := h.Dir(objfile.PEExceptions)
			return !ok || !(arch.Span{Lo: arch.Addr(m.bias + uint64(d.RVA)), Hi: arch.Addr(m.bias + uint64(d.RVA) + uint64(d.Size))}).Has(a)
		}
	}
	return false
}

// readOnly returns the ranges that the process cannot have changed, so that
// the file's bytes are the process's. One exception is made for writable
// sections: the RUNTIME_FUNCTIONs of a ReadyToRun image lie in its .data, and
// nobody writes to them; createdump's dumps hold a third of them at most.
func (m *Image) readOnly() []fileMap {
	var out []fileMap
	if m.Format == "elf" {
		maps := m.maps
		if len(maps) == 0 {
			for _, p := range m.src.progs {
				if p.Type == elf.PT_LOAD {
					s := pageSpan(m.bias+p.Vaddr, p.Filesz)
					maps = append(maps, fileMap{s, p.Off - (m.bias + p.Vaddr - uint64(s.Lo)), m})
				}
			}
		}
		for _, r := range maps {
			parts := []fileMap{r}
			for _, p := range m.src.progs {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 {
					parts = without(parts, pageSpan(m.bias+p.Vaddr, p.Memsz))
				}
			}
			out = append(out, parts...)
		}
		return out
	}
	h := m.peHead()
	if m.Flat || h == nil {
		return m.maps
	}
	for _, r := range m.maps {
		parts := []fileMap{r}
		for i := range h.Sections {
			if s := &h.Sections[i]; s.Characteristics&objfile.PEWritable != 0 {
				parts = without(parts, pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize))))
			}
		}
		out = append(out, parts...)
	}
	if d, ok := h.Dir(objfile.PEExceptions); ok {
		if off, n, ok := h.FileOff(d.RVA); ok {
			lo := arch.Addr(m.bias + uint64(d.RVA))
			out = append(out, fileMap{arch.Span{Lo: lo, Hi: lo + arch.Addr(min(d.Size, n))}, m.shift + uint64(off), m})
		}
	}
	return out
}

// pageSpan returns the whole pages that hold the n bytes at a.
func pageSpan(a, n uint64) arch.Span {
	return arch.Span{Lo: arch.Addr(a &^ (pageSize - 1)), Hi: arch.Addr((a + n + pageSize - 1) &^ (pageSize - 1))}
}

// without cuts s out of maps.
func without(maps []fileMap, s arch.Span) []fileMap {
	var out []fileMap
	for _, r := range maps {
		if s.Hi <= r.Lo || r.Hi <= s.Lo {
			out = append(out, r)
			continue
		}
		if r.Lo < s.Lo {
			out = append(out, fileMap{arch.Span{Lo: r.Lo, Hi: s.Lo}, r.off, r.img})
		}
		if s.Hi < r.Hi {
			out = append(out, fileMap{arch.Span{Lo: s.Hi, Hi: r.Hi}, r.off + uint64(s.Hi-r.Lo), r.img})
		}
	}
	return out
}
