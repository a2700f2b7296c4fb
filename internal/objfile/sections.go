package objfile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/bin"
)

// A Section is a section header with its name.
type Section struct {
	Name       string
	Type       elf.SectionType
	Flags      elf.SectionFlag
	Addr       uint64 // link address, 0 if it is not mapped
	Off, Size  uint64 // in the file
	Link, Info uint32
}

// maxSectionName bounds the name of a section, in bytes; a longer one is left
// out. ".gnu.linkonce" sections of templates have some hundred.
const maxSectionName = 1 << 10

// Sections reads the section headers of the ELF file data, whose header is h.
// What is cut off is left out.
func (h *ELFHeader) Sections(data []byte) []Section {
	if h.Shoff == 0 || h.Shoff >= uint64(len(data)) {
		return nil
	}
	r := bin.New("section headers", data)
	n := min(uint64(h.Shnum), (uint64(len(data))-h.Shoff)/SectionSize)
	r = r.At("section headers", h.Shoff, n*SectionSize)
	secs := make([]Section, 0, n)
	names := make([]uint32, 0, n)
	for range n {
		names = append(names, r.U32())
		s := Section{Type: elf.SectionType(r.U32()), Flags: elf.SectionFlag(r.U64()),
			Addr: r.U64(), Off: r.U64(), Size: r.U64(), Link: r.U32(), Info: r.U32()}
		r.Bytes(16) // sh_addralign, sh_entsize
		secs = append(secs, s)
	}
	if h.Shstrndx < len(secs) {
		if strs := secs[h.Shstrndx].Bytes(data); strs != nil {
			for i := range secs {
				at := min(uint64(names[i]), uint64(len(strs)))
				secs[i].Name = bin.CString(strs[:min(at+maxSectionName, uint64(len(strs)))], at)
			}
		}
	}
	return secs
}

// Bytes returns what the file data holds of the section, not unpacked, or nil.
func (s *Section) Bytes(data []byte) []byte {
	if s.Type == elf.SHT_NOBITS {
		return nil
	}
	return bin.Slice(data, s.Off, s.Size)
}

// SectionData returns the bytes of the section with the name in the file data,
// unpacked if the file has it compressed; nil if there is none. Old files have
// .debug_frame as .zdebug_frame: "ZLIB", a big-endian size, a zlib stream.
func SectionData(data []byte, secs []Section, name string) []byte {
	for i := range secs {
		s := &secs[i]
		switch {
		case s.Name == name:
			b := s.Bytes(data)
			if b == nil || s.Flags&elf.SHF_COMPRESSED == 0 {
				return b
			}
			if len(b) < 24 { // Elf64_Chdr: type, reserved, size, alignment
				return nil
			}
			return inflate(elf.CompressionType(le32(b)), le64(b[8:]), b[24:])
		case strings.HasPrefix(name, ".debug_") && s.Name == ".z"+name[1:]:
			b := s.Bytes(data)
			if len(b) < 12 || string(b[:4]) != "ZLIB" {
				return nil
			}
			return inflate(elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(b[4:]), b[12:])
		}
	}
	return nil
}

// maxSection bounds what one compressed section may unpack to: the debug
// information of the largest programs is a few gigabytes, and nobody walks a
// stack with that.
const maxSection = 1 << 30

// inflate unpacks b, which says that it unpacks to size bytes; nil if not.
func inflate(kind elf.CompressionType, size uint64, b []byte) []byte {
	if size > maxSection {
		return nil
	}
	var r io.Reader
	switch kind {
	case elf.COMPRESS_ZLIB:
		z, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil
		}
		r = z
	case elf.COMPRESS_ZSTD:
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	default:
		return nil
	}
	// Room grows with what really comes out.
	var out bytes.Buffer
	if n, err := io.Copy(&out, io.LimitReader(r, int64(size))); err != nil || uint64(n) != size {
		return nil
	}
	return out.Bytes()
}
