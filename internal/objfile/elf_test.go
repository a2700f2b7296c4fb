package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// elves are files that the tests read: of each kind that linkers make, and the
// C library of this system.
func elves(t *testing.T) map[string][]byte {
	files := map[string][]byte{
		"gnu hash":    buildELF(t, "-Wl,--hash-style=gnu"),
		"sysv hash":   buildELF(t, "-Wl,--hash-style=sysv"),
		"relr":        buildELF(t, "-Wl,-z,pack-relative-relocs"),
		"compressed":  buildELF(t, "-gz=zlib"),
		"no build-id": buildELF(t, "-Wl,--build-id=none"),
	}
	for _, p := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/lib/ld-musl-*.so.1"} {
		for _, path := range glob(p) {
			if data, err := os.ReadFile(path); err == nil {
				files[path] = data
			}
		}
	}
	return files
}

func glob(pattern string) []string {
	m, _ := filepath.Glob(pattern)
	return m
}

// Headers, sections and their bytes are what debug/elf reads.
func TestELFAsDebugELF(t *testing.T) {
	for name, data := range elves(t) {
		want, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseELF(data)
		if err != nil {
			t.Fatal(name, err)
		}
		if f.Type != want.Type || f.Machine != want.Machine || f.Entry != want.Entry || !f.Whole || len(f.Progs) != len(want.Progs) {
			t.Errorf("%s: header %+v, %d segments; want %+v, %d", name, f.ELFHeader, len(f.Progs), want.FileHeader, len(want.Progs))
		}
		for i, p := range f.Progs {
			w := want.Progs[i]
			if p.Type != w.Type || p.Flags != w.Flags || p.Off != w.Off || p.Vaddr != w.Vaddr || p.Filesz != w.Filesz || p.Memsz != w.Memsz {
				t.Errorf("%s: segment %d: %+v, want %+v", name, i, p, w.ProgHeader)
			}
		}
		secs := f.Sections(data)
		if len(secs) != len(want.Sections) {
			t.Fatalf("%s: %d sections, want %d", name, len(secs), len(want.Sections))
		}
		for i, s := range secs {
			w := want.Sections[i]
			if s.Name != w.Name || s.Type != w.Type || s.Flags != w.Flags || s.Addr != w.Addr || s.Link != w.Link || s.Info != w.Info {
				t.Errorf("%s: section %d: %+v, want %+v", name, i, s, w.SectionHeader)
			}
			b, err := w.Data()
			if err != nil || w.Type == elf.SHT_NOBITS || w.Name == "" {
				continue
			}
			if got := f.Section(data, s.Name); !bytes.Equal(got, b) {
				t.Errorf("%s: %s has %d bytes, want %d", name, s.Name, len(got), len(b))
			}
		}
	}
}

// The build-id is the one that readelf prints, read from the file and from where
// it is mapped.
func TestBuildIDAsReadelf(t *testing.T) {
	line := regexp.MustCompile(`Build ID: ([0-9a-f]+)`)
	for name, data := range elves(t) {
		want := ""
		if m := line.FindStringSubmatch(output(t, data, "readelf", "-n")); m != nil {
			want = m[1]
		}
		f, err := ParseELF(data)
		if err != nil {
			t.Fatal(err)
		}
		const bias = 0x7f0000000000
		img, err := NewImage(data, bias)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.BuildID(data); got != want {
			t.Errorf("%s: build-id %q of the file, want %q", name, got, want)
		}
		if got := MappedBuildID(img, bias, f.Progs); got != want {
			t.Errorf("%s: build-id %q where it is mapped, want %q", name, got, want)
		}
		if got := f.DebugBuildID(data); got != want {
			t.Errorf("%s: build-id %q of the section, want %q", name, got, want)
		}
	}
}

// Every symbol that debug/elf lists is found through the hash table, and none
// else.
func TestLookup(t *testing.T) {
	const bias = 0x7f0000000000
	for name, data := range elves(t) {
		want, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		list, err := want.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		img, err := NewImage(data, bias)
		if err != nil {
			t.Fatal(err)
		}
		var d DynSymbols
		for _, p := range img.elf.Progs {
			if p.Type == elf.PT_DYNAMIC {
				d = FindDynSymbols(img, arch.Addr(bias+p.Vaddr), img.span, bias)
			}
		}
		type place struct{ at, size uint64 }
		defined := map[string][]place{} // a name may have several versions
		for _, s := range list {
			if s.Section != elf.SHN_UNDEF {
				defined[s.Name] = append(defined[s.Name], place{s.Value, s.Size})
			}
		}
		for _, s := range list {
			got, ok := d.Lookup(img, s.Name)
			if want := defined[s.Name]; ok != (want != nil) || ok && !slices.Contains(want, place{got.Value, got.Size}) {
				t.Errorf("%s: Lookup(%s) = %+v %v, want one of %v", name, s.Name, got, ok, want)
			}
		}
		if s, ok := d.Lookup(img, "not_there"); ok || len(defined) == 0 {
			t.Errorf("%s: a symbol that is not there is at %#x; %d are", name, s.Value, len(defined))
		}
	}
}

// The debug link is the one that objcopy adds.
func TestDebugLink(t *testing.T) {
	dir := t.TempDir()
	lib, dbg := filepath.Join(dir, "l.so"), filepath.Join(dir, "l.so.debug")
	if err := os.WriteFile(lib, buildELF(t), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--only-keep-debug", lib, dbg)
	run(t, "objcopy", "--strip-debug", "--add-gnu-debuglink="+dbg, lib)
	data, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	debug, err := os.ReadFile(dbg)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseELF(data)
	if err != nil {
		t.Fatal(err)
	}
	name, crc, ok := f.DebugLink(data)
	if want := crc32.ChecksumIEEE(debug); !ok || name != "l.so.debug" || crc != want {
		t.Errorf("debug link %q %#x %v, want %#x", name, crc, ok, want)
	}
	d, err := ParseELF(debug)
	if err != nil {
		t.Fatal(err)
	}
	if f.DebugOnly(data) || !d.DebugOnly(debug) {
		t.Errorf("the image has debugging information only: %v; its debug file: %v", f.DebugOnly(data), d.DebugOnly(debug))
	}
}

// Section names without an end cost no more room than a small multiple of the
// file's size.
func TestHostileSectionNames(t *testing.T) {
	const n = 20000
	data := make([]byte, ELFHeaderSize+n*SectionSize+1<<17)
	strs := data[ELFHeaderSize+n*SectionSize:]
	for i := range strs[:len(strs)-1] {
		strs[i] = 'n'
	}
	for i := range n {
		h := data[ELFHeaderSize+i*SectionSize:]
		binary.LittleEndian.PutUint32(h[4:], uint32(elf.SHT_STRTAB))
		binary.LittleEndian.PutUint64(h[24:], uint64(len(data)-len(strs)))
		binary.LittleEndian.PutUint64(h[32:], uint64(len(strs)))
	}
	room := 0
	h := &ELFHeader{Shoff: ELFHeaderSize, Shnum: n}
	for _, s := range h.Sections(data) {
		room += len(s.Name)
	}
	if room > 4*len(data) {
		t.Errorf("%d bytes of names in %d", room, len(data))
	}
}

// Numbers that an ELF of any bytes claims lead to no panic and no endless loop.
func FuzzELF(f *testing.F) {
	lib := buildELF(f, "-nostdlib", "-gz=zlib", "-s")
	f.Add(lib[:min(len(lib), 1<<14)], uint64(0x1000), "exported")
	f.Fuzz(func(t *testing.T, data []byte, at uint64, name string) {
		e, err := ParseELF(data)
		if err != nil {
			return
		}
		if len(e.Progs)*ProgSize > len(data) || len(e.Sections(data))*SectionSize > len(data) {
			t.Error("more headers than bytes")
		}
		e.BuildID(data)
		e.DebugLink(data)
		e.DebugOnly(data)
		for _, s := range e.Sections(data) {
			if s.Size < 1<<20 {
				e.Section(data, s.Name)
			}
		}
		r := e.Relocations(data)
		if r.Len() > len(data)/8 {
			t.Errorf("%d relocations in %d bytes", r.Len(), len(data))
		}
		if b := e.LinkTime(data, at, 16); b != nil {
			r.Apply(at, b, 0x1000)
		}
		img, err := NewImage(data, 1<<32)
		if err != nil {
			return
		}
		useImage(t, img, arch.Addr(at), name)
	})
}

// useImage asks an image for all it has.
func useImage(t *testing.T, img *Image, a arch.Addr, name string) {
	for _, at := range []arch.Addr{a, a + 1<<32} {
		if b := img.View(at, 16); b != nil && (len(b) != 16 || !img.Span().Has(at)) {
			t.Errorf("%d bytes at %v, in an image at %v", len(b), at, img.Span())
		}
		img.Executable(at)
		if img.elf != nil {
			d := FindDynSymbols(img, at, img.span, img.bias)
			d.Lookup(img, name)
		} else {
			Export(img, arch.Addr(img.bias), at, name)
		}
	}
	for _, table := range []string{".eh_frame_hdr", ".eh_frame", ".pdata", ".text", name} {
		s, ok := img.Table(table)
		if ok && (s.Lo < img.Span().Lo || s.Hi > img.Span().Hi || s.Lo >= s.Hi) {
			t.Errorf("%s lies at %v, the image at %v", table, s, img.Span())
		}
		if h, _ := ReadEhFrameHdr(&img.ptrs, s, 0); h.Size != 0 {
			h.Find(a)
		}
	}
}
