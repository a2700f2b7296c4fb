package loader

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
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
// nil when the image has no such section or its file is not at hand. A section
// that the image's file lacks is looked for in a file of debugging information
// with the same build-id, under the name that .gnu_debuglink gives.
func (m *Image) Section(name string) []byte {
	if b, ok := m.kept.section(name); ok {
		return b
	}
	if m.src == nil || m.src.open() == nil {
		return nil
	}
	if m.Format == "pe" {
		h := m.peHead()
		if h == nil {
			return nil
		}
		for _, s := range h.sections {
			if s.name == name {
				return within(m.src.data, m.shift+uint64(s.rawOff), uint64(s.rawSize))
			}
		}
		return nil
	}
	if b := namedSection(m.src.data, m.src.secs(), name); b != nil {
		return b
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

// A DebugFile is an ELF file of debugging information: it describes an image
// and is not mapped in the process. Its methods work on nil, which has nothing.
type DebugFile struct {
	data []byte
	secs []elfSection
}

// ParseDebugFile reads the section headers of the ELF file that data is, as
// what .gnu_debugdata unpacks to; nil if it is none.
func ParseDebugFile(data []byte) *DebugFile {
	h, err := parseELFHeader(data)
	if err != nil {
		return nil
	}
	return &DebugFile{data, parseSections(data, h)}
}

// DebugFile maps the file at path until p is closed. It returns nil if it is no
// ELF file of that build-id: debugging information of another build would give
// wrong answers and no error.
func (p *Process) DebugFile(path, buildID string) *DebugFile {
	c, ok := mapCandidate(path)
	if !ok {
		return nil
	}
	d := ParseDebugFile(c.data)
	if d == nil || buildID == "" || d.buildID() != buildID {
		c.unmap()
		return nil
	}
	p.onClose(c.unmap)
	return d
}

// Section returns the bytes of a section, unpacked; nil if there is none.
func (d *DebugFile) Section(name string) []byte {
	if d == nil {
		return nil
	}
	return namedSection(d.data, d.secs, name)
}

// buildID returns the build-id in hex. It is read from its section: the program
// headers speak of bytes that were stripped.
func (d *DebugFile) buildID() (id string) {
	eachNote(d.Section(".note.gnu.build-id"), 0, func(n note) bool {
		id = hex.EncodeToString(n.desc)
		return false
	})
	return id
}

// debug looks for a separate file of debugging information, once. Its
// build-id must be the image's; a file without one is not taken.
func (s *source) debug() *DebugFile {
	s.debugOnce.Do(func() {
		id := s.fileID()
		if id == "" || s.find == nil {
			return
		}
		link := cString(namedSection(s.data, s.secs(), ".gnu_debuglink"), 0)
		if link == "" {
			link = s.id.Name + ".debug"
		}
		for path := range each(s.find, ImageID{Name: baseName(link), BuildID: id}, "") {
			if path == s.file {
				continue
			}
			if d := s.p.DebugFile(path, id); d != nil {
				s.debugInfo = d
				return
			}
		}
	})
	return s.debugInfo
}

// fileID returns the build-id of the file itself.
func (s *source) fileID() string {
	return buildID(s.progs, func(off, n uint64) []byte { return within(s.data, off, n) }, true)
}
