package objfile

import (
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A PE is what the headers of a PE32+ or PE32 image say (Microsoft's PE format;
// ECMA-335 II.25 for what is managed).
type PE struct {
	Machine     uint16
	Timestamp   uint32 // IMAGE_FILE_HEADER.TimeDateStamp
	Base        uint64 // preferred ImageBase
	ImageSize   uint32 // SizeOfImage, in bytes
	HeadersSize uint32 // SizeOfHeaders, in bytes
	Sections    []PESection
	Dirs        []PEDir
	Raw         []byte // all of the above, as it was read
}

// A PESection is an entry of the section table.
type PESection struct {
	Name            string
	VA, VSize       uint32 // RVA and size once mapped
	RawOff, RawSize uint32 // in the file
	Characteristics uint32
}

// A PEDir is an entry of the data directories.
type PEDir struct{ RVA, Size uint32 }

// Numbers of data directories (PE format, "Optional Header Data Directories").
const (
	PEExports    = 0
	PEExceptions = 3
	PERelocs     = 5
	PEDebug      = 6
	PECLR        = 14
)

// Flags of PESection.Characteristics.
const (
	PEExecutable = 0x20000000 // IMAGE_SCN_MEM_EXECUTE
	PEWritable   = 0x80000000 // IMAGE_SCN_MEM_WRITE
)

// peAnyCPU is IMAGE_FILE_MACHINE_I386, which .NET images that are only IL have:
// there it means any CPU.
const peAnyCPU = 0x14c

// Sizes and kinds in the headers of a PE file.
const (
	peSectionSize = 40
	peDirs        = 16 // data directories at most
	magicPE32     = 0x10b
	magicPE32Plus = 0x20b
)

// ParsePE reads the headers at the start of data, of which the first page is
// enough for .NET's images. The error is a [*FormatError] or a [*bin.Error].
func ParsePE(data []byte) (*PE, error) {
	if len(data) < 64 || data[0] != 'M' || data[1] != 'Z' {
		return nil, &FormatError{0, "no MZ header"}
	}
	nt := uint64(le32(data[60:])) // e_lfanew
	r := bin.New("PE header", data)
	r = r.At("PE header", nt, uint64(len(data))-min(nt, uint64(len(data))))
	if sig := r.U32(); r.Err() != nil || sig != 0x4550 {
		return nil, &FormatError{int64(nt), "no PE signature"}
	}
	h := &PE{Machine: r.U16()}
	nsect := r.U16()
	h.Timestamp = r.U32()
	r.Bytes(8) // symbol table
	optSize := r.U16()
	r.Bytes(2) // characteristics
	if err := h.optional(data, nt+24, uint64(optSize)); err != nil {
		return nil, err
	}
	// Of a file that is cut there are fewer sections than it claims.
	table := min(nt+24+uint64(optSize), uint64(len(data)))
	s := bin.New("section table", data[table:])
	for range min(int(nsect), s.Len()/peSectionSize) {
		name := s.Bytes(8)
		sec := PESection{Name: bin.CString(append(slices.Clone(name), 0), 0)}
		sec.VSize, sec.VA, sec.RawSize, sec.RawOff = s.U32(), s.U32(), s.U32(), s.U32()
		s.Bytes(12)
		sec.Characteristics = s.U32()
		h.Sections = append(h.Sections, sec)
	}
	h.Raw = data[:table+uint64(len(h.Sections))*peSectionSize]
	return h, nil
}

// optional reads the optional header, which has size bytes at off of data.
func (h *PE) optional(data []byte, off, size uint64) error {
	opt := bin.New("optional header", bin.Slice(data, off, size))
	magic := opt.U16()
	opt.Bytes(22) // up to BaseOfCode
	switch magic {
	case magicPE32Plus:
		h.Base = opt.U64()
	case magicPE32:
		opt.U32() // BaseOfData
		h.Base = uint64(opt.U32())
	default:
		return &FormatError{int64(off), fmt.Sprintf("an optional header of kind %#x", magic)}
	}
	opt.Bytes(24) // alignments and versions
	h.ImageSize, h.HeadersSize = opt.U32(), opt.U32()
	opt.Bytes(8) // checksum, subsystem, characteristics
	if magic == magicPE32Plus {
		opt.Bytes(32 + 4) // sizes of stack and heap, loader flags
	} else {
		opt.Bytes(16 + 4)
	}
	n := opt.Count(uint64(min(opt.U32(), peDirs)), 8)
	for range n {
		h.Dirs = append(h.Dirs, PEDir{opt.U32(), opt.U32()})
	}
	return opt.Err()
}

// For reports whether the image is for CPU a. A .NET image that is only IL is
// for every CPU.
func (h *PE) For(a *arch.Arch) bool {
	return slices.Contains(a.PETypes, h.Machine) || h.Machine == peAnyCPU
}

// Dir returns data directory n, if the image has it.
func (h *PE) Dir(n int) (PEDir, bool) {
	if n < 0 || n >= len(h.Dirs) || h.Dirs[n].RVA == 0 || h.Dirs[n].Size == 0 {
		return PEDir{}, false
	}
	return h.Dirs[n], true
}

// FileOff returns where the file has the byte at rva, and how many bytes
// follow it in its section.
func (h *PE) FileOff(rva uint32) (off, n uint32, ok bool) {
	if rva < h.HeadersSize {
		return rva, h.HeadersSize - rva, true
	}
	for i := range h.Sections {
		if s := &h.Sections[i]; rva >= s.VA && rva-s.VA < s.RawSize && s.RawOff+(rva-s.VA) >= s.RawOff {
			off = s.RawOff + (rva - s.VA)
			return off, min(s.RawSize-(rva-s.VA), ^off), true
		}
	}
	return 0, 0, false
}

// Named returns the first section of the name, or nil.
func (h *PE) Named(name string) *PESection {
	for i := range h.Sections {
		if h.Sections[i].Name == name {
			return &h.Sections[i]
		}
	}
	return nil
}

// Section returns what the file that data begins with has of a section, or nil.
func (h *PE) Section(data []byte, name string) []byte {
	s := h.Named(name)
	if s == nil {
		return nil
	}
	return bin.Slice(data, uint64(s.RawOff), uint64(s.RawSize))
}

// LinkTime returns a copy of the n bytes at rva as the file that data begins with
// has them, or nil when it has not all of them in one section. Relocations are
// not applied.
func (h *PE) LinkTime(data []byte, rva uint32, n int) []byte {
	off, have, ok := h.FileOff(rva)
	if !ok || uint64(have) < uint64(n) {
		return nil
	}
	return slices.Clone(bin.Slice(data, uint64(off), uint64(n)))
}
