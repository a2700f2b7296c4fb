package memtest

import (
	"bytes"
	"debug/elf"
	"testing"
)

type addr uint64

// TestMemories reads at and around the edges of every kind of memory.
func TestMemories(t *testing.T) {
	eight := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	pieces := Pieces[addr]{{0x2000, append(eight[:4:4], eight...)}}
	pieces.Add(0x1000, eight)
	for _, c := range []struct {
		name string
		m    Memory[addr]
		at   addr
		want uint64
		view bool // View has the same bytes
	}{
		{"piece", Piece[addr]{0x1000, eight}, 0x1000, 0x0807060504030201, true},
		{"piece", Piece[addr]{0x1000, eight}, 0x1001, 0, false},
		{"piece", Piece[addr]{0x1000, eight}, 0xfff, 0, false},
		{"pieces", pieces, 0x1000, 0x0807060504030201, true},
		{"pieces", pieces, 0x2004, 0x0807060504030201, true},
		{"pieces", pieces, 0x2005, 0, false},
		{"pieces without", pieces.Without(0x1000), 0x1000, 0, false},
		{"sparse", &Sparse[addr]{map[addr]uint64{0x3000: 5}, 0x3000, 0x3010, pieces}, 0x3000, 5, false},
		{"sparse", &Sparse[addr]{map[addr]uint64{}, 0x3000, 0x3010, pieces}, 0x1000, 0x0807060504030201, true},
		{"holed", &Holed[addr]{Memory: pieces, Hole: 0x2000}, 0x1000, 0x0807060504030201, true},
		{"holed", &Holed[addr]{Memory: pieces, Hole: 0x1000}, 0x1000, 0, false},
		{"holed", &Holed[addr]{Memory: pieces, Hole: 0x2000}, 0x2004, 0, false},
	} {
		if v, ok := c.m.Word(c.at); v != c.want || ok != (c.want != 0) {
			t.Errorf("%s at %#x: %#x, %v, want %#x", c.name, c.at, v, ok, c.want)
		}
		if b := c.m.View(c.at, 8); (b != nil) != c.view {
			t.Errorf("%s at %#x: % x", c.name, c.at, b)
		}
	}
	if v, ok := (&Sparse[addr]{Lo: 0x3000, Hi: 0x3010, Images: pieces}).Word(0x3008); v != 0 || !ok {
		t.Error("a word that was never written is zero")
	}
	h := &Holed[addr]{Memory: pieces, Read: map[addr]bool{}}
	h.Word(0x2004)
	h.View(0x100c, 1)
	if len(h.Read) != 2 || !h.Read[0x2000] || !h.Read[0x1008] {
		t.Errorf("read %v", h.Read)
	}
}

// TestCore reads a core as debug/elf does.
func TestCore(t *testing.T) {
	c := &Core{Loads: []Load{{Addr: 0x1000, Data: []byte("memory"), Size: 0x1000, Flags: elf.PF_R}}}
	c.Thread(7, 0x1000, 0x1ff8)
	c.Note("ABC", 3, []byte{1})
	f, err := elf.NewFile(bytes.NewReader(c.Bytes()))
	if err != nil || f.Type != elf.ET_CORE || f.Machine != elf.EM_X86_64 || len(f.Progs) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	if p := f.Progs[0]; p.Type != elf.PT_NOTE || p.Filesz != uint64(len(c.Notes)) || p.Filesz != 12+8+336+12+4+4 {
		t.Errorf("notes: %+v", p)
	}
	got := make([]byte, 6)
	if p := f.Progs[1]; p.Vaddr != 0x1000 || p.Memsz != 0x1000 || p.Flags != elf.PF_R {
		t.Errorf("memory: %+v", p)
	} else if _, err := p.ReadAt(got, 0); err != nil || string(got) != "memory" {
		t.Errorf("memory: %q, %v", got, err)
	}
}
