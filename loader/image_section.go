package loader

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxSection bounds what one compressed section may unpack to: the debug
// information of the largest programs is a few gigabytes, and nobody walks a
// stack with that.
const maxSection = 1 << 30

// Section returns the bytes of a section that need not be mapped, as
// ".debug_frame" or ".symtab", unpacked if the file has it compressed. It is
// nil when the image has no such section or no file that has it is at hand. A
// section that the image's file lacks, or whose image has no file, is looked for
// in a separate file of debugging information (see [Finder]).
func (m *Image) Section(name string) []byte {
	if b, ok := m.kept.section(name); ok {
		return b
	}
	if m.src == nil {
		return nil
	}
	if m.Format == "pe" {
		h := m.peHead()
		if h == nil || m.src.open() == nil {
			return nil
		}
		for _, s := range h.sections {
			if s.name == name {
				return within(m.src.bytes(), m.shift+uint64(s.rawOff), uint64(s.rawSize))
			}
		}
		return nil
	}
	if m.src.open() != nil {
		if b := namedSection(m.src.bytes(), m.src.secs(), name); b != nil {
			return b
		}
	}
	return m.src.debug().Section(name)
}

// namedSection returns an unpacked section, or nil. Old files have
// .debug_frame as .zdebug_frame: "ZLIB", a big-endian size, a zlib stream.
func namedSection(data []byte, secs []elfSection, name string) []byte {
	for i := range secs {
		s := &secs[i]
		switch {
		case s.name == name:
			b := sectionBytes(data, s)
			if b == nil || s.flags&elf.SHF_COMPRESSED == 0 {
				return b
			}
			if len(b) < 24 { // Elf64_Chdr: type, reserved, size, alignment
				return nil
			}
			return inflate(elf.CompressionType(binary.LittleEndian.Uint32(b)), le64(b[8:]), b[24:])
		case strings.HasPrefix(name, ".debug_") && s.name == ".z"+name[1:]:
			b := sectionBytes(data, s)
			if len(b) < 12 || string(b[:4]) != "ZLIB" {
				return nil
			}
			return inflate(elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(b[4:]), b[12:])
		}
	}
	return nil
}

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
