package objfile

import (
	"debug/elf"
	"fmt"

	"github.com/seamwalk/seam/internal/bin"
)

// Sizes in ELF64, in bytes (System V gABI, chapters 4 and 5).
const (
	ELFHeaderSize = 64
	ProgSize      = 56 // of an Elf64_Phdr
	SectionSize   = 64 // of an Elf64_Shdr
	SymSize       = 24 // of an Elf64_Sym
	RelaSize      = 24 // of an Elf64_Rela
)

// PNXNum is PN_XNUM of the gABI: a file with so many program headers or more
// has their count in sh_info of section header 0.
const PNXNum = 0xffff

// shnXIndex is SHN_XINDEX of the gABI: the index of the section of names is in
// sh_link of section header 0.
const shnXIndex = 0xffff

// A FormatError says where a file breaks the rules of its format.
type FormatError struct {
	Off  int64 // in the file, in bytes
	What string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s, at offset %#x", e.What, e.Off) }

// An ELFHeader is what the first bytes of an ELF file say (gABI, chapter 4).
type ELFHeader struct {
	Type     elf.Type
	Machine  elf.Machine
	Entry    uint64 // link address of the entry point
	Phoff    uint64 // of the program headers in the file
	Shoff    uint64 // of the section headers in the file, 0 if there are none
	Phnum    int
	Shnum    int
	Shstrndx int // index of the section that has the names of sections
}

// A Prog is a program header. At is the header's own offset in the file.
type Prog struct {
	Type          elf.ProgType
	Flags         elf.ProgFlag
	Off, Vaddr    uint64
	Filesz, Memsz uint64
	At            uint64
}

// ParseELFHeader reads the header of an ELF64 little-endian file. data may be
// the whole file or just its first page. The error is a [*FormatError].
func ParseELFHeader(data []byte) (*ELFHeader, error) {
	if len(data) < ELFHeaderSize || string(data[:4]) != elf.ELFMAG {
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
	h := &ELFHeader{Type: elf.Type(r.U16()), Machine: elf.Machine(r.U16())}
	r.Bytes(4) // e_version
	h.Entry, h.Phoff, h.Shoff = r.U64(), r.U64(), r.U64()
	r.Bytes(4 + 2) // e_flags, e_ehsize
	phentsize := r.U16()
	h.Phnum = int(r.U16())
	shentsize := r.U16()
	h.Shnum, h.Shstrndx = int(r.U16()), int(r.U16())
	if h.Phnum > 0 && phentsize != ProgSize {
		return nil, &FormatError{54, fmt.Sprintf("program headers of %d bytes instead of %d", phentsize, ProgSize)}
	}
	if shentsize != SectionSize {
		h.Shnum, h.Shoff = 0, 0
	}
	if h.Shoff != 0 && (h.Phnum == PNXNum || h.Shnum == 0 || h.Shstrndx == shnXIndex) {
		h.largeCounts(&r)
	}
	return h, nil
}

// largeCounts takes the counts that do not fit into 16 bits from section header
// 0 (gABI, chapter 4). A core of more than 65,534 mappings has it, and it may be
// cut off: then the count that fits is all there is.
func (h *ELFHeader) largeCounts(file *bin.Reader) {
	s := file.At("section header 0", h.Shoff, SectionSize)
	s.Bytes(32)
	size := s.U64()
	link, info := s.U32(), s.U32()
	if s.Err() != nil {
		return
	}
	const most = 1<<31 - 1 // an int may have 32 bits
	if h.Phnum == PNXNum && info >= PNXNum {
		h.Phnum = int(min(info, most))
	}
	if h.Shnum == 0 && size <= most {
		h.Shnum = int(size)
	}
	if h.Shstrndx == shnXIndex {
		h.Shstrndx = int(min(link, most))
	}
}

// ParseProgs reads up to n program headers, which begin at offset off of data,
// and reports whether data held them all.
func ParseProgs(data []byte, off uint64, n int) (progs []Prog, whole bool) {
	have := 0
	if off < uint64(len(data)) {
		have = int((uint64(len(data)) - off) / ProgSize)
	}
	k := min(n, have)
	progs = make([]Prog, 0, k)
	r := bin.New("program headers", data)
	r = r.At("program headers", min(off, uint64(len(data))), uint64(k)*ProgSize)
	for i := range k {
		p := Prog{Type: elf.ProgType(r.U32()), Flags: elf.ProgFlag(r.U32()),
			Off: r.U64(), Vaddr: r.U64(), At: off + uint64(i)*ProgSize}
		r.U64() // p_paddr
		p.Filesz, p.Memsz = r.U64(), r.U64()
		r.U64() // p_align
		progs = append(progs, p)
	}
	return progs, k == n
}
