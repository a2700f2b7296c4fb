package loader

import (
	"debug/elf"
	"fmt"

	"github.com/seamwalk/seam/internal/bin"
)

// An elfHeader is what is needed of an ELF file's first bytes.
type elfHeader struct {
	typ      elf.Type
	machine  elf.Machine
	phoff    uint64
	shoff    uint64
	phnum    int
	shnum    int
	shstrndx int
}

// An elfProg is a program header; at is its own offset in the file.
type elfProg struct {
	typ           elf.ProgType
	flags         elf.ProgFlag
	off, vaddr    uint64
	filesz, memsz uint64
	at            uint64
}

// An elfSection is a section header with its name.
type elfSection struct {
	name       string
	typ        elf.SectionType
	flags      elf.SectionFlag
	addr       uint64
	off, size  uint64
	link, info uint32
}

const (
	elfHeaderSize = 64 // sizes in ELF64 (System V gABI, chapters 4 and 5)
	elfProgSize   = 56
	elfSectSize   = 64
	pnXNum        = 0xffff // PN_XNUM: the count is sh_info of section header 0
	shnXIndex     = 0xffff
)

// parseELFHeader reads the header of an ELF64 little-endian file. data may be
// the whole file or just its first page.
func parseELFHeader(data []byte) (*elfHeader, error) {
	if len(data) < elfHeaderSize || string(data[:4]) != elf.ELFMAG {
		return nil, &FormatError{0, "no whole ELF header"}
	}
	if data[elf.EI_CLASS] != byte(elf.ELFCLASS64) {
		return nil, &FormatError{int64(elf.EI_CLASS), "an ELF file of 32 bits; only 64 bits are known"}
	}
	if data[elf.EI_DATA] != byte(elf.ELFDATA2LSB) {
		return nil, &FormatError{int64(elf.EI_DATA), "a big-endian ELF file; only little-endian is known"}
	}
	r := bin.New("ELF header", data)
	r.Bytes(16)
	h := &elfHeader{typ: elf.Type(r.U16()), machine: elf.Machine(r.U16())}
	r.Bytes(4 + 8) // e_version, e_entry
	h.phoff, h.shoff = r.U64(), r.U64()
	r.Bytes(4 + 2) // e_flags, e_ehsize
	phentsize := r.U16()
	h.phnum = int(r.U16())
	shentsize := r.U16()
	h.shnum, h.shstrndx = int(r.U16()), int(r.U16())
	if h.phnum > 0 && phentsize != elfProgSize {
		return nil, &FormatError{54, fmt.Sprintf("program headers of %d bytes instead of %d", phentsize, elfProgSize)}
	}
	if shentsize != elfSectSize {
		h.shnum, h.shoff = 0, 0
	}
	if h.shoff != 0 && (h.phnum == pnXNum || h.shnum == 0 || h.shstrndx == shnXIndex) {
		// Counts that do not fit lie in section header 0 (gABI, chapter 4). A
		// core of more than 65,534 mappings has it, and it may be cut off: then
		// the count that fits is all there is.
		s := r.At("section header 0", h.shoff, elfSectSize)
		s.Bytes(32)
		size := s.U64()
		link, info := s.U32(), s.U32()
		if s.Err() == nil {
			if h.phnum == pnXNum && info >= pnXNum {
				h.phnum = int(min(info, 1<<31-1)) // an int may have 32 bits
			}
			if h.shnum == 0 && size < 1<<31 {
				h.shnum = int(size)
			}
			if h.shstrndx == shnXIndex {
				h.shstrndx = int(min(link, 1<<31-1))
			}
		}
	}
	return h, nil
}

// parseProgs reads up to n program headers, and reports whether data held them all.
func parseProgs(data []byte, h *elfHeader, n int) (progs []elfProg, whole bool) {
	have := 0
	if h.phoff < uint64(len(data)) {
		have = int((uint64(len(data)) - h.phoff) / elfProgSize)
	}
	k := min(n, have)
	progs = make([]elfProg, 0, k)
	r := bin.New("program headers", data)
	r = r.At("program headers", min(h.phoff, uint64(len(data))), uint64(k)*elfProgSize)
	for i := range k {
		p := elfProg{typ: elf.ProgType(r.U32()), flags: elf.ProgFlag(r.U32()),
			off: r.U64(), vaddr: r.U64(), at: h.phoff + uint64(i)*elfProgSize}
		r.U64() // p_paddr
		p.filesz, p.memsz = r.U64(), r.U64()
		r.U64() // p_align
		progs = append(progs, p)
	}
	return progs, k == n
}

// maxSectionName bounds the name of a section, in bytes; one that is longer is
// left out. ".gnu.linkonce" sections of templates have some hundred.
const maxSectionName = 1 << 10

// parseSections reads the section headers of a file; what is cut off is left out.
func parseSections(data []byte, h *elfHeader) []elfSection {
	if h.shoff == 0 || h.shoff >= uint64(len(data)) {
		return nil
	}
	r := bin.New("section headers", data)
	n := min(uint64(h.shnum), (uint64(len(data))-h.shoff)/elfSectSize)
	r = r.At("section headers", h.shoff, n*elfSectSize)
	secs := make([]elfSection, 0, n)
	names := make([]uint32, 0, n)
	for range n {
		names = append(names, r.U32())
		s := elfSection{typ: elf.SectionType(r.U32()), flags: elf.SectionFlag(r.U64()),
			addr: r.U64(), off: r.U64(), size: r.U64(), link: r.U32(), info: r.U32()}
		r.Bytes(16) // sh_addralign, sh_entsize
		secs = append(secs, s)
	}
	if h.shstrndx < len(secs) {
		if strs := sectionBytes(data, &secs[h.shstrndx]); strs != nil {
			for i := range secs {
				at := min(uint64(names[i]), uint64(len(strs)))
				secs[i].name = cString(strs[:min(at+maxSectionName, uint64(len(strs)))], at)
			}
		}
	}
	return secs
}

// sectionBytes returns what the file holds of a section, not unpacked, or nil.
func sectionBytes(data []byte, s *elfSection) []byte {
	if s.typ == elf.SHT_NOBITS {
		return nil
	}
	return within(data, s.off, s.size)
}

// within returns data[off:off+n], or nil when that is not all there.
func within(data []byte, off, n uint64) []byte {
	if off > uint64(len(data)) || n > uint64(len(data))-off {
		return nil
	}
	return data[off : off+n : off+n]
}

// cString returns the zero-terminated string at off, or "".
func cString(b []byte, off uint64) string {
	if off >= uint64(len(b)) {
		return ""
	}
	b = b[off:]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return ""
}

// A note is one entry of a PT_NOTE segment or an SHT_NOTE section.
type note struct {
	name string
	typ  uint32
	desc []byte
	off  int64 // of the entry in the file
}

// eachNote calls f for every whole note in b, which lies at off in its file,
// until f returns false. It reports where a broken or cut note begins, or -1.
// Names and descs are padded to 4 bytes, in cores of 64 bits too, whatever the
// gABI says of 8.
func eachNote(b []byte, off int64, f func(note) bool) (broken int64) {
	r := bin.New("notes", b)
	for r.Len() >= 12 {
		at := off + int64(len(b)-r.Len())
		namesz, descsz, typ := r.U32(), r.U32(), r.U32()
		if uint64(namesz)+uint64(descsz) > uint64(r.Len()) {
			return at
		}
		name := r.Bytes(int(namesz))
		pad(&r, namesz)
		desc := r.Bytes(int(descsz))
		pad(&r, descsz)
		if r.Err() != nil {
			return at
		}
		for len(name) > 0 && name[len(name)-1] == 0 {
			name = name[:len(name)-1]
		}
		if !f(note{string(name), typ, desc, at}) {
			return -1
		}
	}
	return -1
}

// pad skips to a multiple of 4; the last note of a file may lack its padding.
func pad(r *bin.Reader, n uint32) {
	r.Bytes(min(int(-n&3), r.Len()))
}
