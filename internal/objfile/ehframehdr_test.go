package objfile

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

// The sorted table leads to the FDE that readelf lists for each function, for its
// first byte and for its last.
func TestFindAsReadelf(t *testing.T) {
	line := regexp.MustCompile(`(?m)^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
	const bias = 0x7f0000000000
	for name, data := range elves(t) {
		img, err := NewImage(data, bias)
		if err != nil {
			t.Fatal(name, err)
		}
		hdr, ok := img.Table(".eh_frame_hdr")
		frames, ok2 := img.Table(".eh_frame")
		var section arch.Addr
		for _, s := range img.elf.Sections(data) {
			if s.Name == ".eh_frame" {
				section = arch.Addr(bias + s.Addr)
			}
		}
		if !ok || !ok2 || frames.Lo != section {
			t.Fatalf("%s: .eh_frame_hdr at %v, .eh_frame at %v, want %v", name, hdr, frames, section)
		}
		h, f := ReadEhFrameHdr(&img.ptrs, hdr, 0)
		if f != (Fault{}) || h.Size == 0 {
			t.Fatalf("%s: %+v, %+v", name, h, f)
		}
		list := line.FindAllStringSubmatch(output(t, data, "readelf", "--debug-dump=frames"), -1)
		first := arch.Addr(1<<64 - 1)
		for _, m := range list {
			var v [3]uint64
			for i := range v {
				v[i], _ = strconv.ParseUint(m[i+1], 16, 64)
			}
			lo, hi := arch.Addr(bias+v[1]), arch.Addr(bias+v[2])
			first = min(first, lo)
			for _, a := range []arch.Addr{lo, hi - 1} {
				if fde, s, f := h.Find(a); lo < hi && (s != Found || fde != section+arch.Addr(v[0])) {
					t.Errorf("%s: Find(%v) = %v, %v, %v; want %v", name, a, fde, s, f, section+arch.Addr(v[0]))
				}
			}
		}
		if uint64(len(list)) != h.Count {
			t.Errorf("%s: %d entries, readelf lists %d FDEs", name, h.Count, len(list))
		}
		if _, s, _ := h.Find(first - 1); s != NotFound {
			t.Errorf("%s: in front of all functions: %v", name, s)
		}
	}
}

// ehFrameHdr makes a table of entries {begin, FDE}, relative to its own begin, at
// address 0x1000.
func ehFrameHdr(entries ...[2]int32) []byte {
	b := []byte{1, PtrPCRel | PtrS4, PtrU4, PtrDataRel | PtrS4}
	b = binary.LittleEndian.AppendUint32(b, 0x2000)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(e[0])), uint32(e[1]))
	}
	return b
}

// readHdr reads a table at 0x1000 of an image that is as large.
func readHdr(b []byte) (EhFrameHdr, Fault) {
	p := &Pointers{Mem: memtest.Piece[arch.Addr]{At: 0x1000, Data: b}, Word: 8, Span: arch.Span{Lo: 0x1000, Hi: 0x10000}, Relocated: true}
	return ReadEhFrameHdr(p, arch.Span{Lo: 0x1000, Hi: 0x1000 + arch.Addr(len(b))}, 0)
}

// A table that is cut or damaged is not believed, and what is missing is named.
func TestDamagedEhFrameHdr(t *testing.T) {
	good := ehFrameHdr([2]int32{0x100, 0x500}, [2]int32{0x200, 0x540}, [2]int32{0x300, 0x580})
	h, f := readHdr(good)
	if fde, s, _ := h.Find(0x1250); f != (Fault{}) || h.Frames != 0x3004 || s != Found || fde != 0x1540 {
		t.Fatalf("%+v, %+v: %v, %v", h, f, fde, s)
	}
	for n := range 12 {
		if _, f := readHdr(good[:n]); f.Kind != Missing || f.At != 0x1000+arch.Addr(n) {
			t.Errorf("cut to %d bytes: %+v", n, f)
		}
	}
	if _, f := readHdr(good[:len(good)-1]); f.Kind != Broken {
		t.Errorf("an entry more than there is room for: %+v", f)
	}
	version := slices.Clone(good)
	version[0] = 2
	if _, f := readHdr(version); f != (Fault{Broken, 0x1000}) {
		t.Errorf("version 2: %+v", f)
	}
	h, _ = readHdr(ehFrameHdr([2]int32{0x300, 0x500}, [2]int32{0x100, 0x540}, [2]int32{0x200, 0x580}))
	if fde, s, f := h.Find(0x1250); s != Unordered {
		t.Errorf("a table out of order: %v, %v, %+v", fde, s, f)
	}
	h, _ = readHdr(ehFrameHdr([2]int32{0x100, 0}))
	if fde, s, f := h.Find(0x1250); s != Failed || f.Kind != Broken {
		t.Errorf("an entry without an FDE: %v, %v, %+v", fde, s, f)
	}
}

// Bytes of any kind are no table, or one that is searched in bounds.
func FuzzEhFrameHdr(f *testing.F) {
	f.Add(ehFrameHdr([2]int32{0x100, 0x500}, [2]int32{0x200, 0x540}), uint64(0x1150))
	f.Add([]byte{1, PtrULEB | PtrPCRel, PtrSLEB, PtrIndirect | PtrAbs, 0x80, 0x80}, uint64(0))
	f.Add([]byte{1, PtrAligned, PtrU8, PtrAbs, 0, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, a uint64) {
		h, fault := readHdr(b)
		if h.Size == 0 {
			return
		}
		if fault != (Fault{}) || h.Count*uint64(2*h.Size) > uint64(len(b)) {
			t.Fatalf("%d entries of %d bytes in %d, %+v", h.Count, 2*h.Size, len(b), fault)
		}
		fde, s, fault := h.Find(arch.Addr(a))
		if (s == Failed) != (fault != Fault{}) {
			t.Fatalf("%v, %+v", s, fault)
		}
		if s != Found {
			return
		}
		// One of the entries says so.
		for i := range h.Count {
			at := h.Entries + arch.Addr(i)*arch.Addr(2*h.Size)
			begin, _ := h.value(at)
			if v, _ := h.value(at + arch.Addr(h.Size)); v == fde && begin <= arch.Addr(a) {
				return
			}
		}
		t.Errorf("no entry leads from %#x to %v", a, fde)
	})
}

// Bytes of any kind are read as a dynamic section and its hash tables in bounds.
func FuzzDynamic(f *testing.F) {
	lib := buildELF(f, "-nostdlib", "-s")
	if e, err := ParseELF(lib); err == nil {
		for _, p := range e.Progs {
			if p.Type == 2 && p.Off < 1<<14 { // PT_DYNAMIC
				f.Add(lib[:min(len(lib), 1<<14)], p.Off, "exported")
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint64, name string) {
		mem := Bytes(b)
		n := 0
		for range Dynamic(mem, arch.Addr(at)) {
			n++
		}
		if n > len(b)/16+1 {
			t.Errorf("%d entries in %d bytes", n, len(b))
		}
		d := FindDynSymbols(mem, arch.Addr(at), arch.Span{Hi: arch.Addr(len(b))}, 0)
		for _, h := range []DynSymbols{d, {Symbols: d.Symbols, Strings: d.Strings, Hash: d.Hash}} {
			if s, ok := h.Lookup(mem, name); ok {
				if got := mem.View(h.Strings+arch.Addr(s.Name), len(name)); string(got) != name {
					t.Errorf("found %q for %q", got, name)
				}
			}
		}
	})
}

// Bytes of any kind are read as notes in bounds, and where they break is said.
func FuzzNotes(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\xde\xad\xbe\xef"), int64(0x100))
	f.Fuzz(func(t *testing.T, b []byte, off int64) {
		off &= 1<<40 - 1
		room := 0
		broken := EachNote(b, off, func(n Note) bool {
			room += 12 + len(n.Desc)
			if n.Off < off || n.Off >= off+int64(len(b)) {
				t.Errorf("a note at %#x", n.Off)
			}
			return true
		})
		if room > len(b) || broken != -1 && (broken < off || broken >= off+int64(len(b))) {
			t.Errorf("%d bytes of notes in %d, broken at %#x", room, len(b), broken)
		}
	})
}
