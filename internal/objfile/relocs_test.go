package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	const bias = 0x7f0000000000
	a, b := Relocations{list: list}, Relocations{rela: rela}
	changed := 0
	for at := uint64(0xff0); at < 0x1050; at++ {
		for n := 1; n < 40; n++ {
			x, y := make([]byte, n), make([]byte, n)
			a.Apply(at, x, bias)
			b.Apply(at, y, bias)
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

// Each relative relocation that readelf lists is applied, packed or not.
func TestRelocationsAsReadelf(t *testing.T) {
	line := regexp.MustCompile(`(?m)^([0-9a-f]{16})\s+[0-9a-f]{16}\s+R_\w+_RELATIV\w*\s+([0-9a-f]+)`)
	for _, flags := range [][]string{nil, {"-nostartfiles"}} {
		data := buildELF(t, flags...)
		f, err := ParseELF(data)
		if err != nil {
			t.Fatal(err)
		}
		r := f.Relocations(data)
		want := line.FindAllStringSubmatch(output(t, data, "readelf", "-rW"), -1)
		if len(want) == 0 || r.Len() != len(want) {
			t.Errorf("%v: %d relocations, readelf has %d", flags, r.Len(), len(want))
		}
		// The same file with its relocations packed has the same words.
		packed := buildELF(t, append(flags, "-Wl,-z,pack-relative-relocs")...)
		p, err := ParseELF(packed)
		if err != nil {
			t.Fatal(err)
		}
		pr := p.Relocations(packed)
		if pr.Len() != len(want) {
			t.Errorf("%v: %d packed relocations, want %d", flags, pr.Len(), len(want))
		}
		for i, w := range p.Sections(packed) {
			if w.Name != ".data.rel.ro" {
				continue
			}
			b := p.LinkTime(packed, w.Addr, int(w.Size))
			pr.Apply(w.Addr, b, 0x5500)
			old := f.Sections(data)[slices.IndexFunc(f.Sections(data), func(s Section) bool { return s.Name == w.Name })]
			c := f.LinkTime(data, old.Addr, int(old.Size))
			r.Apply(old.Addr, c, 0x5500)
			for k := 0; k < len(b) && k < len(c); k += 8 {
				// The strings that they point to lie in the same order.
				if le64(b[k:])-le64(b) != le64(c[k:])-le64(c) {
					t.Fatalf("%v: section %d, word %d: %#x packed, %#x not", flags, i, k/8, le64(b[k:]), le64(c[k:]))
				}
			}
			if len(b) != len(c) || len(b) < 160*8 {
				t.Errorf("%v: %d bytes packed, %d not", flags, len(b), len(c))
			}
		}
		for _, w := range want {
			at, _ := strconv.ParseUint(w[1], 16, 64)
			addend, _ := strconv.ParseUint(w[2], 16, 64)
			b := f.LinkTime(data, at, 8)
			r.Apply(at, b, 0x5500)
			if got := le64(b); got != addend+0x5500 {
				t.Errorf("%v: the word at %#x becomes %#x, want %#x", flags, at, got, addend+0x5500)
			}
		}
	}
}

// Relocations that repeat one another cost no more room than the file has words.
func TestHostileRelocations(t *testing.T) {
	file := make([]byte, 1<<16)
	le := binary.LittleEndian
	for i, v := range []uint64{uint64(dtRelr), 0x1000, uint64(dtRelrSz), 0x8000, 0, 0} {
		le.PutUint64(file[8*i:], v)
	}
	for i := 0x1000; i < 0x9000; i += 16 {
		le.PutUint64(file[i:], 0x1000)
		le.PutUint64(file[i+8:], ^uint64(0))
	}
	f := &ELF{Progs: []Prog{
		{Type: elf.PT_LOAD, Filesz: 1 << 16, Memsz: 1 << 16},
		{Type: elf.PT_DYNAMIC, Filesz: 64, Memsz: 64}}}
	if n := f.Relocations(file).Len(); n > len(file)/8 || n == 0 {
		t.Errorf("%d relocations in %d words", n, len(file)/8)
	}
	if r := f.Relocations(file[:32]); !r.Missing {
		t.Error("a file that ends in its dynamic section has relocations")
	}
}

// llvm-readobj lists the same base relocations of a DLL.
func TestBaseRelocations(t *testing.T) {
	data := buildPE(t)
	h, err := ParsePE(data)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`Type: DIR64\s+Address: 0x([0-9A-F]+)`).FindAllStringSubmatch(output(t, data, "llvm-readobj", "--coff-basereloc"), -1) {
		want = append(want, strings.ToLower(m[1]))
	}
	r := h.Relocations(data)
	var got []string
	for _, x := range r.list {
		got = append(got, fmt.Sprintf("%x", x.at))
		b := h.LinkTime(data, uint32(x.at), 8)
		linked := le64(b)
		r.Apply(x.at, b, h.Base)
		if le64(b) != linked {
			t.Errorf("at its preferred base the word at %#x becomes %#x, and was linked as %#x", x.at, le64(b), linked)
		}
	}
	if len(want) == 0 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("relocations at %v, want %v", got, want)
	}
}
