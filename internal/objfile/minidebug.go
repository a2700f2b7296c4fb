package objfile

import (
	"bytes"
	"errors"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// maxDebugData bounds what .gnu_debugdata unpacks to. Fedora's largest are a
// few MB.
const maxDebugData = 64 << 20

// MiniDebugInfo unpacks a section .gnu_debugdata: an ELF file of a symbol table
// and little else, packed with xz, that some distributions put into an image for
// the functions that .dynsym does not list (gdb manual, section 18.5).
func MiniDebugInfo(packed []byte) (data []byte, f *ELF, err error) {
	if data, err = unpackXZ(packed); err != nil {
		return nil, nil, err
	}
	f, err = ParseELF(data)
	return data, f, err
}

var errXZ = errors.New("not an xz stream that can be read")

// Numbers of the xz format (The .xz File Format 1.2.1).
const (
	xzMagic  = "\xfd7zXZ\x00"
	xzHeader = 12   // of a stream, in bytes
	xzLZMA2  = 0x21 // the filter of packed data
)

// xzChecks are the sizes of the checksum behind a block, by its kind.
var xzChecks = [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// unpackXZ unpacks the first xz stream of packed.
//
// The container is read here, and only the LZMA2 data by the library: its own
// reader makes room for the dictionary that a block's header claims, up to 4 GB
// for a stream of a few bytes. Checksums are passed over; a damaged symbol
// table costs names.
func unpackXZ(packed []byte) ([]byte, error) {
	if len(packed) < xzHeader || string(packed[:6]) != xzMagic {
		return nil, errXZ
	}
	check := xzChecks[packed[7]&15]
	in := bytes.NewReader(packed[xzHeader:])
	var out []byte
	for {
		dict, more, err := xzBlock(in)
		if err != nil || !more {
			return out, err
		}
		// A dictionary is of no use beyond what can come out before its end.
		dict = max(lzma.MinDictCap, min(dict, 1<<16+256*int64(len(packed))))
		start := in.Len()
		r, err := lzma.Reader2Config{DictCap: int(dict)}.NewReader2(in)
		if err != nil {
			return nil, errXZ
		}
		b, err := io.ReadAll(io.LimitReader(r, int64(maxDebugData-len(out))))
		if err != nil {
			return nil, errXZ
		}
		out = append(out, b...)
		if len(out) >= maxDebugData {
			return nil, errXZ
		}
		used := int64(start - in.Len())
		if _, err := in.Seek(-used&3+check, io.SeekCurrent); err != nil {
			return nil, errXZ
		}
	}
}

// xzBlock reads the header of a block and returns the size of the dictionary that
// it claims, in bytes. more is false where the index follows, behind the last
// block.
func xzBlock(in *bytes.Reader) (dict int64, more bool, err error) {
	size, err := in.ReadByte()
	if err != nil {
		return 0, false, errXZ
	}
	if size == 0 {
		return 0, false, nil
	}
	block := make([]byte, 4*int(size)+3)
	if _, err := io.ReadFull(in, block); err != nil {
		return 0, false, errXZ
	}
	// Flags, two sizes that may be there, then the filters. Symbols are packed
	// with LZMA2 alone.
	flags, filters := block[0], block[1:]
	for bit := byte(0x40); bit != 0; bit <<= 1 {
		if flags&bit != 0 {
			filters = skipVLI(filters)
		}
	}
	if flags&3 != 0 || len(filters) < 3 || filters[0] != xzLZMA2 || filters[1] != 1 {
		return 0, false, errXZ
	}
	if dict, err = lzma.DecodeDictCap(filters[2]); err != nil {
		return 0, false, errXZ
	}
	return dict, true, nil
}

// skipVLI passes over a number of variable length.
func skipVLI(b []byte) []byte {
	for i := range b {
		if b[i]&0x80 == 0 {
			return b[i+1:]
		}
	}
	return nil
}
