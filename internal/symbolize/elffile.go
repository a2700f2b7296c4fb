package symbolize

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/arch"
)

// An elfFile is an ELF64 file that holds symbols of an image and is not the
// image: a debug file, or what .gnu_debugdata unpacks to. Only what is asked for
// is read of it; debug files have hundreds of MB.
type elfFile struct {
	r        io.ReaderAt
	size     int64
	sections []elfSection
}

type elfSection struct {
	name      string
	typ       uint32
	flags     uint64
	off, size uint64
	link      uint32
}

// Numbers of the gABI, chapter 4, and bounds on what a header may claim.
const (
	ehSize        = 64
	shSize        = 64
	shtSymtab     = 2
	shtNote       = 7
	shtNobits     = 8
	shfCompressed = 0x800
	chSize        = 24 // of an Elf64_Chdr
	compressZlib  = 1
	compressZstd  = 2
	maxSections   = 0x10000
	maxSection    = 512 << 20
)

var errELF = errors.New("not an ELF file that can be read")

// newELF reads the headers of an ELF64 file.
func newELF(r io.ReaderAt, size int64) (*elfFile, error) {
	f := &elfFile{r: r, size: size}
	eh := f.bytes(0, ehSize)
	if eh == nil || string(eh[:6]) != "\x7fELF\x02\x01" {
		return nil, errELF
	}
	shoff, n, names := le64(eh[40:]), uint64(le16(eh[60:])), uint64(le16(eh[62:]))
	if le16(eh[58:]) != shSize || n == 0 || n > maxSections || names >= n {
		return nil, errELF
	}
	sh := f.bytes(shoff, n*shSize)
	if sh == nil {
		return nil, errELF
	}
	at := func(i uint64) []byte { return sh[i*shSize : (i+1)*shSize] }
	strs := f.bytes(le64(at(names)[24:]), le64(at(names)[32:]))
	for i := range n {
		h := at(i)
		s := elfSection{typ: le32(h[4:]), flags: le64(h[8:]), off: le64(h[24:]), size: le64(h[32:]), link: le32(h[40:])}
		if o := le32(h); uint64(o) < uint64(len(strs)) {
			s.name = (&table{names: strs}).name(entry{name: o})
		}
		f.sections = append(f.sections, s)
	}
	return f, nil
}

// bytes returns the n bytes at off, or nil when the file does not have them.
func (f *elfFile) bytes(off, n uint64) []byte {
	if n > maxSection || off > uint64(f.size) || n > uint64(f.size)-off {
		return nil
	}
	b := make([]byte, n)
	if _, err := f.r.ReadAt(b, int64(off)); err != nil {
		return nil
	}
	return b
}

// data returns a section's contents, unpacked.
func (f *elfFile) data(s *elfSection) []byte {
	if s.typ == shtNobits {
		return nil
	}
	b := f.bytes(s.off, s.size)
	if s.flags&shfCompressed == 0 || len(b) < chSize {
		return b
	}
	size := le64(b[8:])
	if size > maxSection {
		return nil
	}
	var r io.Reader
	switch le32(b) {
	case compressZlib:
		z, err := zlib.NewReader(bytes.NewReader(b[chSize:]))
		if err != nil {
			return nil
		}
		r = z
	case compressZstd:
		z, err := zstd.NewReader(bytes.NewReader(b[chSize:]), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	default:
		return nil
	}
	// Grown as it comes, whatever the header claims.
	out, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil || uint64(len(out)) != size {
		return nil
	}
	return out
}

// symbols indexes .symtab, or returns nil. The file describes an image that
// ends at end.
func (f *elfFile) symbols(end arch.LinkAddr) *table {
	for i := range f.sections {
		s := &f.sections[i]
		if s.typ != shtSymtab || uint64(s.link) >= uint64(len(f.sections)) {
			continue
		}
		return parseSymbols(f.data(s), f.data(&f.sections[s.link]), true, end)
	}
	return nil
}

// buildID returns the GNU build id, in hex as the loader spells it, or "".
func (f *elfFile) buildID() string {
	for i := range f.sections {
		s := &f.sections[i]
		if s.typ != shtNote || s.size > 1<<16 {
			continue
		}
		for b := f.data(s); len(b) >= 12; {
			namesz, descsz, typ := uint64(le32(b)), uint64(le32(b[4:])), le32(b[8:])
			desc := 12 + (namesz+3)&^3
			next := desc + (descsz+3)&^3
			if desc+descsz > uint64(len(b)) {
				break
			}
			if typ == 3 && string(b[12:min(12+namesz, desc)]) == "GNU\x00" { // NT_GNU_BUILD_ID
				return hex(b[desc : desc+descsz])
			}
			b = b[min(next, uint64(len(b))):]
		}
	}
	return ""
}

func hex(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}
