package symbolize

import (
	"bytes"
	"errors"
	"io"

	"github.com/seamwalk/seam/loader"
	"github.com/ulikunitz/xz/lzma"
)

// maxDebugData bounds what .gnu_debugdata unpacks to. Fedora's largest are a
// few MB.
const maxDebugData = 64 << 20

// openDebugData takes the symbols of functions that .dynsym does not list,
// which some distributions pack into the image ("MiniDebugInfo", gdb manual
// section 18.5): an ELF file, packed with xz, of a symbol table and little else.
func openDebugData(_ *Symbolizer, img *loader.Image) *table {
	packed := img.Section(".gnu_debugdata")
	if packed == nil {
		return nil
	}
	elf, err := unpackXZ(packed)
	if err != nil {
		return nil
	}
	// The packer leaves out what .dynsym has, but that was asked before.
	f := loader.ParseDebugFile(elf)
	return parseSymbols(f.Section(".symtab"), f.Section(".strtab"), true, linkEnd(img))
}

var errXZ = errors.New("not an xz stream that can be read")

// unpackXZ unpacks the first xz stream of packed (The .xz File Format 1.2.1).
//
// The container is read here, and only the LZMA2 data by the library: its own
// reader makes room for the dictionary that a block's header claims, up to 4 GB
// for a stream of a few bytes. Checksums are passed over; a damaged symbol
// table costs names.
func unpackXZ(packed []byte) ([]byte, error) {
	const header, lzma2 = 12, 0x21
	if len(packed) < header || string(packed[:6]) != "\xfd7zXZ\x00" {
		return nil, errXZ
	}
	check := [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[packed[7]&15]
	in := bytes.NewReader(packed[header:])
	var out []byte
	for {
		size, err := in.ReadByte()
		if err != nil {
			return nil, errXZ
		}
		if size == 0 { // the index: no more blocks
			return out, nil
		}
		block := make([]byte, 4*int(size)+3)
		if _, err := io.ReadFull(in, block); err != nil {
			return nil, errXZ
		}
		// Flags, two sizes that may be there, then the filters. Symbols are
		// packed with LZMA2 alone.
		flags, filters := block[0], block[1:]
		for bit := byte(0x40); bit != 0; bit <<= 1 {
			if flags&bit != 0 {
				filters = skipVLI(filters)
			}
		}
		if flags&3 != 0 || len(filters) < 3 || filters[0] != lzma2 || filters[1] != 1 {
			return nil, errXZ
		}
		dict, err := lzma.DecodeDictCap(filters[2])
		if err != nil {
			return nil, errXZ
		}
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

// skipVLI passes over a number of variable length.
func skipVLI(b []byte) []byte {
	for i := range b {
		if b[i]&0x80 == 0 {
			return b[i+1:]
		}
	}
	return nil
}
