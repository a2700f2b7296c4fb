package loader

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Relocations that are found in the file's own table do what sorted ones do,
// also where they lie across the ends of what is asked for.
func TestRelocateInPlace(t *testing.T) {
	list := []relocation{{0x1000, 0x11}, {0x1008, 0x22}, {0x1013, 0x33}, {0x1040, 0x44}}
	var rela []byte
	for _, r := range list {
		rela = binary.LittleEndian.AppendUint64(rela, r.at)
		rela = binary.LittleEndian.AppendUint64(rela, 8) // R_X86_64_RELATIVE
		rela = binary.LittleEndian.AppendUint64(rela, r.addend)
	}
	a := &Image{bias: 0x7f0000000000, rels: relocations{list: list}}
	b := &Image{bias: a.bias, rels: relocations{rela: rela}}
	changed := 0
	for at := uint64(0xff0); at < 0x1050; at++ {
		for n := 1; n < 40; n++ {
			x, y := make([]byte, n), make([]byte, n)
			a.relocate(at, x)
			b.relocate(at, y)
			if !bytes.Equal(x, y) {
				t.Fatalf("%d bytes at %#x: %x in place, %x from the list", n, at, y, x)
			}
			if bytes.Count(x, []byte{0}) < n {
				changed++
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d of the pieces were relocated", changed)
	}
}
