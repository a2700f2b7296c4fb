package loader

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A peHeader is what is needed of the headers of a PE32+ or PE32 image
// (Microsoft's PE format; ECMA-335 II.25 for what is managed).
type peHeader struct {
	machine     uint16
	timestamp   uint32
	base        uint64 // preferred ImageBase
	imageSize   uint32
	headersSize uint32
	sections    []peSection
	dirs        []peDir
	raw         []byte // all of the above, as it was read
}

type peSection struct {
	name            string
	va, vsize       uint32
	rawOff, rawSize uint32
	characteristics uint32
}

type peDir struct{ rva, size uint32 }

// Numbers of data directories, and a section's flags.
const (
	peExports    = 0
	peExceptions = 3
	peRelocs     = 5
	peDebug      = 6
	peCLR        = 14
	peExecutable = 0x20000000 // IMAGE_SCN_MEM_EXECUTE
	peWritable   = 0x80000000 // IMAGE_SCN_MEM_WRITE
)

// parsePE reads the headers at the start of data, of which the first page is
// enough for .NET's images.
func parsePE(data []byte) (*peHeader, error) {
	if len(data) < 64 || data[0] != 'M' || data[1] != 'Z' {
		return nil, &FormatError{0, "no MZ header"}
	}
	nt := uint64(binary.LittleEndian.Uint32(data[60:])) // e_lfanew
	r := bin.New("PE header", data)
	r = r.At("PE header", nt, uint64(len(data))-min(nt, uint64(len(data))))
	if sig := r.U32(); r.Err() != nil || sig != 0x4550 {
		return nil, &FormatError{int64(nt), "no PE signature"}
	}
	h := &peHeader{machine: r.U16()}
	nsect := r.U16()
	h.timestamp = r.U32()
	r.Bytes(8) // symbol table
	optSize := r.U16()
	r.Bytes(2) // characteristics
	opt := bin.New("optional header", within(data, nt+24, uint64(optSize)))
	magic := opt.U16()
	opt.Bytes(22) // up to BaseOfCode
	switch magic {
	case 0x20b:
		h.base = opt.U64()
	case 0x10b:
		opt.U32() // BaseOfData
		h.base = uint64(opt.U32())
	default:
		return nil, &FormatError{int64(nt) + 24, fmt.Sprintf("an optional header of kind %#x", magic)}
	}
	opt.Bytes(24) // alignments and versions
	h.imageSize, h.headersSize = opt.U32(), opt.U32()
	opt.Bytes(8) // checksum, subsystem, characteristics
	if magic == 0x20b {
		opt.Bytes(32 + 4)
	} else {
		opt.Bytes(16 + 4)
	}
	ndirs := opt.Count(uint64(min(opt.U32(), 16)), 8)
	for range ndirs {
		h.dirs = append(h.dirs, peDir{opt.U32(), opt.U32()})
	}
	if err := opt.Err(); err != nil {
		return nil, err
	}
	// Of a file that is cut there are fewer sections than it claims.
	table := min(nt+24+uint64(optSize), uint64(len(data)))
	s := bin.New("section table", data[table:])
	for range min(int(nsect), s.Len()/40) {
		name := s.Bytes(8)
		sec := peSection{name: cString(append(append([]byte(nil), name...), 0), 0)}
		sec.vsize, sec.va, sec.rawSize, sec.rawOff = s.U32(), s.U32(), s.U32(), s.U32()
		s.Bytes(12)
		sec.characteristics = s.U32()
		h.sections = append(h.sections, sec)
	}
	h.raw = data[:table+uint64(len(h.sections))*40]
	return h, nil
}

// knownPE reports whether the image is for the CPU, as an .NET image that is
// only IL (machine I386, which means any CPU there) is too.
func (h *peHeader) knownPE(a *arch.Arch) bool {
	for _, t := range a.PETypes {
		if h.machine == t {
			return true
		}
	}
	return h.machine == 0x14c
}

// dir returns a data directory that is there.
func (h *peHeader) dir(n int) (peDir, bool) {
	if n < 0 || n >= len(h.dirs) || h.dirs[n].rva == 0 || h.dirs[n].size == 0 {
		return peDir{}, false
	}
	return h.dirs[n], true
}

// fileOff returns where the file has the byte at rva, and how many bytes
// follow it in its section.
func (h *peHeader) fileOff(rva uint32) (off, n uint32, ok bool) {
	if rva < h.headersSize {
		return rva, h.headersSize - rva, true
	}
	for i := range h.sections {
		if s := &h.sections[i]; rva >= s.va && rva-s.va < s.rawSize && s.rawOff+(rva-s.va) >= s.rawOff {
			off = s.rawOff + (rva - s.va)
			return off, min(s.rawSize-(rva-s.va), ^off), true
		}
	}
	return 0, 0, false
}
