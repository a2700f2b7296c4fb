package objfile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A section is unpacked whichever way it was packed, and not when it lies
// about its size.
func TestPackedSections(t *testing.T) {
	want := bytes.Repeat([]byte("unwind"), 1000)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(want)
	w.Close()
	enc, _ := zstd.NewWriter(nil)
	s := enc.EncodeAll(want, nil)
	chdr := func(kind elf.CompressionType, size int, b []byte) []byte {
		h := binary.LittleEndian.AppendUint64(nil, uint64(kind))
		h = binary.LittleEndian.AppendUint64(h, uint64(size))
		return append(binary.LittleEndian.AppendUint64(h, 1), b...)
	}
	old := append(binary.BigEndian.AppendUint64([]byte("ZLIB"), uint64(len(want))), z.Bytes()...)
	for _, c := range []struct {
		name  string
		flags elf.SectionFlag
		data  []byte
		ok    bool
	}{
		{".debug_frame", 0, want, true},
		{".debug_frame", elf.SHF_COMPRESSED, chdr(elf.COMPRESS_ZLIB, len(want), z.Bytes()), true},
		{".debug_frame", elf.SHF_COMPRESSED, chdr(elf.COMPRESS_ZSTD, len(want), s), true},
		{".zdebug_frame", 0, old, true},
		{".debug_frame", elf.SHF_COMPRESSED, chdr(elf.COMPRESS_ZLIB, len(want)+1, z.Bytes()), false},
		{".debug_frame", elf.SHF_COMPRESSED, chdr(elf.COMPRESS_ZLIB, 1<<40, z.Bytes()), false},
		{".debug_frame", elf.SHF_COMPRESSED, chdr(77, len(want), z.Bytes()), false},
		{".debug_frame", elf.SHF_COMPRESSED, z.Bytes()[:8], false},
		{".zdebug_frame", 0, old[:11], false},
	} {
		secs := []Section{{Name: c.name, Flags: c.flags, Size: uint64(len(c.data))}}
		if got := SectionData(c.data, secs, ".debug_frame"); bytes.Equal(got, want) != c.ok || !c.ok && got != nil {
			t.Errorf("%s, flags %v: %d bytes", c.name, c.flags, len(got))
		}
	}
}
