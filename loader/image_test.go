package loader

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seamwalk/seam/arch"
)

const libBase = 0x7f1200000000

// mapLibrary makes a core of a process that has the library mapped at libBase,
// the way the kernel dumps it: of file mappings the header page and what was
// written to. With header false, that page is missing too.
func mapLibrary(t testing.TB, lib []byte, header bool) *buildCore {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(lib))
	if err != nil {
		t.Fatal(err)
	}
	b := new(buildCore)
	b.thread(1, libBase, 0)
	var files []fileNote
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		s := pageSpan(libBase+p.Vaddr, p.Filesz)
		off := p.Off &^ (pageSize - 1)
		files = append(files, fileNote{s, off, "/lib/l.so"})
		l := buildLoad{addr: uint64(s.Lo), mem: uint64(s.Hi - s.Lo), flags: p.Flags}
		if off == 0 && header {
			l.data = lib[:pageSize]
		}
		b.loads = append(b.loads, l)
	}
	b.mapped(files...)
	return b
}

// library opens a process that has the library mapped, its file at hand under
// the name that the process knew.
func library(t testing.TB, lib []byte, header bool) *Process {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "l.so"), lib, 0o600); err != nil {
		t.Fatal(err)
	}
	return mapLibrary(t, lib, header).open(t, &Options{Find: DirFinder(dir), Track: true})
}

// Symbols, tables and bytes of an image agree with debug/elf, with the
// header page in the dump and without.
func TestELFImage(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"gnu hash", []string{"-Wl,--hash-style=gnu"}},
		{"sysv hash", []string{"-Wl,--hash-style=sysv"}},
		{"relr", []string{"-Wl,-z,pack-relative-relocs"}},
		{"compressed", []string{"-gz=zlib"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lib := elfFile(t, c.flags)
			f, err := elf.NewFile(bytes.NewReader(lib))
			if err != nil {
				t.Fatal(err)
			}
			syms, _ := f.DynamicSymbols()
			for _, header := range []bool{true, false} {
				p := library(t, lib, header)
				if len(p.Images) != 1 {
					t.Fatalf("%d images", len(p.Images))
				}
				m := p.Images[0]
				if m.Bias() != libBase || m.Verified() != header || m.ID.BuildID == "" == header {
					t.Errorf("bias %#x, verified %v, id %+v", m.Bias(), m.Verified(), m.ID)
				}
				checkSymbols(t, p, m, syms)
				checkSections(t, p, m, f)
			}
		})
	}
}

func checkSymbols(t *testing.T, p *Process, m *Image, syms []elf.Symbol) {
	var counter, pointer arch.Addr
	for _, s := range syms {
		a, size, ok := m.Lookup(s.Name)
		if defined := s.Section != elf.SHN_UNDEF; ok != defined || ok && (uint64(a) != libBase+s.Value || size != s.Size) {
			t.Errorf("Lookup(%s) = %v, %d, %v; want %#x, %d", s.Name, a, size, ok, libBase+s.Value, s.Size)
		}
		switch s.Name {
		case "counter":
			counter = a
		case "pointer":
			pointer = a
		}
	}
	if _, _, ok := m.Lookup("not_there"); ok {
		t.Error("a symbol that is not there is found")
	}
	// pointer = &counter: what the linker wrote needs a symbol's relocation,
	// which adds more than the bias and is left alone; counter's value is plain.
	if v, ok := m.FileWord(counter); !ok || uint32(v) != 7 {
		t.Errorf("counter = %d %v at link time", v, ok)
	}
	if _, ok := p.Memory.Word(pointer); ok {
		t.Error("the memory serves a writable segment from a file")
	}
	if why, im := p.Memory.Absent(pointer); why != NotDumped || im != m {
		t.Errorf("a writable byte is absent because it is %v", why)
	}
}

func checkSections(t *testing.T, p *Process, m *Image, f *elf.File) {
	for _, s := range f.Sections {
		want, err := s.Data()
		if err != nil || s.Type == elf.SHT_NOBITS || s.Size == 0 || s.Name == "" {
			continue
		}
		if got := m.Section(s.Name); !bytes.Equal(got, want) {
			t.Errorf("Section(%s): %d bytes, want %d", s.Name, len(got), len(want))
		}
		if s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		span, ok := m.Table(s.Name)
		if !ok || uint64(span.Lo) != libBase+s.Addr {
			t.Errorf("Table(%s) = %v, %v; want %#x", s.Name, span, ok, libBase+s.Addr)
		}
		if s.Flags&elf.SHF_WRITE == 0 {
			if got := p.Memory.View(arch.Addr(libBase+s.Addr), len(want)); !bytes.Equal(got, want) {
				t.Errorf("memory of %s is not the file's", s.Name)
			}
		}
	}
}

// Link-time bytes have the bias added where the linker asks for it: .init_array
// points to frame_dummy.
func TestRelative(t *testing.T) {
	for _, flags := range [][]string{nil, {"-Wl,-z,pack-relative-relocs"}} {
		lib := elfFile(t, flags)
		f, err := elf.NewFile(bytes.NewReader(lib))
		if err != nil {
			t.Fatal(err)
		}
		var dummy uint64
		syms, _ := f.Symbols()
		for _, s := range syms {
			if s.Name == "frame_dummy" {
				dummy = s.Value
			}
		}
		m := library(t, lib, true).Images[0]
		at := arch.Addr(libBase + f.Section(".init_array").Addr)
		if v, ok := m.FileWord(at); !ok || v != libBase+dummy {
			t.Errorf("%v: .init_array[0] = %#x %v, want %#x", flags, v, ok, libBase+dummy)
		}
		// The same in two halves, and a byte before it.
		if b := m.FileView(at+3, 5); !bytes.Equal(b, m.FileView(at, 8)[3:]) {
			t.Errorf("a part of a relocated word: % x", b)
		}
		if n := len(f.Section(".init_array").Name); m.FileView(m.Span().Hi, n) != nil || m.FileView(at, 1<<31) != nil {
			t.Error("bytes outside the image")
		}
	}
}

// A file of another build is refused, by name with both identities, with the
// dump's build-id and without.
func TestOtherBuild(t *testing.T) {
	lib := elfFile(t, nil)
	other := elfFile(t, []string{"-O2", "-DX=1", "-fno-inline", "-fstack-protector-all"})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "l.so"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, header := range []bool{true, false} {
		b := mapLibrary(t, lib, header)
		if !header {
			// Without the page that has the build-id, the dynamic section tells.
			f, _ := elf.NewFile(bytes.NewReader(lib))
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 {
					b.loads = append(b.loads, buildLoad{addr: libBase + p.Vaddr&^(pageSize-1), data: lib[p.Off&^(pageSize-1) : p.Off+p.Filesz], flags: elf.PF_W})
				}
			}
		}
		p := b.open(t, &Options{Find: DirFinder(dir)})
		m := p.Images[0]
		at := m.Span().Lo + 0x1000
		if _, ok := p.Memory.Word(at); ok {
			t.Error("bytes of another build are served")
		}
		if why, _ := p.Memory.Absent(at); why != ImageDiffers {
			t.Errorf("absent because: %v", why)
		}
		if m.FileView(at, 8) != nil || m.Section(".symtab") != nil {
			t.Error("sections of another build are given")
		}
		text := p.Problems()[len(p.Problems())-1].Text
		if !strings.Contains(text, "l.so") || header && !strings.Contains(text, m.ID.BuildID) {
			t.Errorf("the warning says: %s", text)
		}
	}
}

// Without files, what is absent is so for want of a file.
func TestNoFiles(t *testing.T) {
	lib := elfFile(t, nil)
	p := mapLibrary(t, lib, true).open(t, nil)
	if why, m := p.Memory.Absent(libBase + 0x1000); why != ImageNotFound || m != p.Images[0] {
		t.Errorf("absent: %v", why)
	}
	if got := p.Images[0].Bytes(); got != "dump" {
		t.Errorf("Bytes = %q", got)
	}
	if _, ok := p.Images[0].Table(".eh_frame_hdr"); !ok {
		t.Error("no .eh_frame_hdr by program headers")
	}
}

// A cut file gives what it has, and says where it ends.
func TestCutFile(t *testing.T) {
	lib := elfFile(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "l.so"), lib[:0x1010], 0o600); err != nil {
		t.Fatal(err)
	}
	p := mapLibrary(t, lib, true).open(t, &Options{Find: DirFinder(dir)})
	m := p.Images[0]
	if m.Verified() {
		if _, ok := p.Memory.Word(libBase + 0x1000); !ok {
			t.Error("the file's last bytes are not served")
		}
		if why, _ := p.Memory.Absent(libBase + 0x1010); why != ImageCut {
			t.Errorf("behind the end: %v", why)
		}
	} else if _, why, text := m.File(); why != ImageDiffers || !strings.Contains(text, "ends at") {
		t.Errorf("%v: %s", why, text)
	}
}

// A process may be asked by many goroutines at once, files being looked for
// meanwhile.
func TestConcurrent(t *testing.T) {
	p := library(t, elfFile(t, nil), false)
	m := p.Images[0]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for a := m.Span().Lo; a < m.Span().Hi; a += 0x100 {
				p.Memory.Word(a)
				p.Memory.Absent(a)
				m.FileWord(a)
			}
			m.Lookup("exported")
			m.Table(".text")
			m.Section(".symtab")
			m.Bytes()
			p.Problems()
			p.Memory.Touched()
		})
	}
	wg.Wait()
}
