package loader

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// A file offset near 2^64 does not reach around its end.
func TestHostileFileOffset(t *testing.T) {
	dir := t.TempDir()
	// An assembly mapped flat, of which the dump has no page: all that can be
	// compared is its size.
	file := make([]byte, 2*pageSize)
	copy(file, "MZ")
	binary.LittleEndian.PutUint32(file[60:], 64)
	copy(file[64:], "PE\x00\x00\x64\x86")
	binary.LittleEndian.PutUint16(file[64+20:], 240)
	binary.LittleEndian.PutUint16(file[64+24:], 0x20b)
	if err := os.WriteFile(filepath.Join(dir, "a.dll"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, off := range []uint64{0, 1<<64 - pageSize} {
		var b buildCore
		b.thread(1, 0x1000, 0x1000)
		b.mapped(fileNote{arch.Span{Lo: 0x10000, Hi: 0x10000 + 2*pageSize}, off, "/x/a.dll"})
		p := b.open(t, &Options{Find: DirFinder(dir)})
		for _, a := range []arch.Addr{0x10000, 0x11000, 0x11ffc} {
			if v := p.Memory.View(a, 4); off == 0 && v == nil || off != 0 && v != nil {
				t.Errorf("offset %#x: %x at %v", off, v, a)
			}
		}
	}
	// The same by program headers alone, whose first offset lies before the file.
	m := &Image{Format: "elf", src: &source{p: &Process{}, mapped: make([]byte, 3*pageSize)}, bias: 0x100000,
		span: arch.Span{Lo: 0x100000, Hi: 0x102000}}
	m.src.once.Do(func() {})
	m.src.elf = &objfile.ELF{Progs: []objfile.Prog{{Type: elf.PT_LOAD, Vaddr: 0x10, Filesz: 0x1000, Memsz: 0x1000}}}
	if b := m.served(0x100000); b != nil {
		t.Errorf("%d bytes before the file's begin", len(b))
	}
	if b := m.served(0x100010); len(b) == 0 {
		t.Error("the file's first byte is not served")
	}
}

// Notes that the headers name again and again are read once.
func TestHostileNotes(t *testing.T) {
	var b buildCore
	for range 2000 {
		b.note("CORE", 77, make([]byte, 8))
	}
	b.thread(1, 0x1000, 0x1000)
	for range 60000 {
		b.loads = append(b.loads, buildLoad{})
	}
	data := b.bytes()
	for i := 1; i <= len(b.loads); i++ {
		copy(data[objfile.ELFHeaderSize+i*objfile.ProgSize:], data[objfile.ELFHeaderSize:objfile.ELFHeaderSize+objfile.ProgSize])
	}
	began := time.Now()
	p, err := openBytes("built", data, Options{Limits: Limits{}.withDefaults()})
	if err != nil || len(p.Threads) == 0 || !warned(p, "note_bad") {
		t.Errorf("%v, %d threads, %v", err, len(p.Threads), p.Warnings)
	}
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
}

// Mappings by the hundred thousand of one file that is no library, and as many
// segments that cannot be: neither takes minutes, nor room for a word on each.
func TestHostileMappings(t *testing.T) {
	var b buildCore
	b.thread(1, 0x1000, 0x1000)
	files := make([]fileNote, 150_000)
	for i := range files {
		lo := arch.Addr(0x10000 + i*2*pageSize)
		files[i] = fileNote{arch.Span{Lo: lo, Hi: lo + pageSize}, 0, "/x"}
	}
	b.mapped(files...)
	for range 50_000 {
		b.loads = append(b.loads, buildLoad{addr: 1<<64 - 1, mem: 2})
	}
	began := time.Now()
	p := b.open(t, nil)
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
	if n := len(p.Problems()); n < 10 || n > 2000 {
		t.Errorf("%d warnings", n)
	}
}

type oneFile string

func (f oneFile) Find(ImageID, string) []string { return []string{string(f)} }

// A core and a file that is found for whatever image it names: both from the
// same hand.
func FuzzOpenWithFile(f *testing.F) {
	lib := elfFile(f, []string{"-nostdlib", "-s"})
	pe := make([]byte, 0x600)
	copy(pe, "MZ")
	binary.LittleEndian.PutUint32(pe[60:], 64)
	copy(pe[64:], "PE\x00\x00\x64\x86")
	binary.LittleEndian.PutUint16(pe[64+20:], 240)
	binary.LittleEndian.PutUint16(pe[64+24:], 0x20b)
	for _, c := range []struct {
		path string
		file []byte
	}{{"/lib/l.so", lib}, {"/x/a.dll", pe}} {
		var b buildCore
		b.thread(1, 0x100010, 0x1000)
		b.mapped(fileNote{arch.Span{Lo: 0x100000, Hi: 0x100000 + pageSpan(0, uint64(len(c.file))).Hi}, 0, c.path})
		f.Add(b.bytes(), c.file)
		b.loads = append(b.loads, buildLoad{addr: 0x100000, data: c.file[:min(len(c.file), 0x400)]})
		f.Add(b.bytes(), c.file)
	}
	path := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, core, file []byte) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openBytes("fuzz", core, Options{Find: oneFile(path), Limits: Limits{}.withDefaults()})
		if err != nil {
			return
		}
		defer p.Close()
		for _, m := range p.Images[:min(len(p.Images), 16)] {
			for _, n := range []string{".eh_frame_hdr", ".eh_frame", ".text", ".pdata"} {
				m.Table(n)
			}
			m.Section(".symtab")
			m.Lookup("exported")
			for _, a := range []arch.Addr{m.span.Lo, m.span.Lo + 0x1000, m.span.Hi - 8} {
				p.Memory.View(a, 16)
				p.Memory.Absent(a)
				m.FileView(a, 16)
			}
		}
	})
}

// Segments without bytes are not cut, wherever they claim to lie.
func TestCutCounts(t *testing.T) {
	b := buildCore{loads: []buildLoad{{addr: 0x1000, data: make([]byte, 64)}, {addr: 0x9000, mem: 0x1000}, {addr: 0x20000, data: make([]byte, 64)}}}
	b.thread(1, 0, 0)
	data := b.bytes()
	le := binary.LittleEndian
	le.PutUint64(data[objfile.ELFHeaderSize+2*objfile.ProgSize+8:], 1<<40)
	for cut, want := range map[int]string{0: "", 10: "1 of 3 segments lack 10 bytes"} {
		p, err := openBytes("cut", data[:len(data)-cut], Options{Limits: Limits{}.withDefaults()})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, w := range p.Warnings {
			if w.Code == "core_cut" {
				text += w.Text
			}
		}
		if !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("cut by %d: %q, want %q", cut, text, want)
		}
	}
}
