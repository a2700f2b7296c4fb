package unwind

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// An elfImage serves an ELF file as an Image and its Memory, at bias 0.
type elfImage struct {
	path string
	file *elf.File
	arch *arch.Arch
	segs []segment
	span arch.Span
}

type segment struct {
	at   arch.Addr
	data []byte
}

func (m *elfImage) View(a arch.Addr, n int) []byte {
	for _, s := range m.segs {
		if off := a - s.at; a >= s.at && off < arch.Addr(len(s.data)) && n <= len(s.data)-int(off) {
			return s.data[off : int(off)+n]
		}
	}
	return nil
}

func (m *elfImage) Word(a arch.Addr) (uint64, bool) {
	if b := m.View(a, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

func (m *elfImage) Span() arch.Span { return m.span }
func (m *elfImage) Bias() uint64    { return 0 }

func (m *elfImage) Table(name string) (arch.Span, bool) {
	s := m.file.Section(name)
	if s == nil || s.Addr == 0 || s.Type == elf.SHT_NOBITS {
		return arch.Span{}, false
	}
	return arch.Span{Lo: arch.Addr(s.Addr), Hi: arch.Addr(s.Addr + s.Size)}, true
}

func (m *elfImage) Section(name string) []byte {
	if s := m.file.Section(name); s != nil {
		b, _ := s.Data()
		return b
	}
	return nil
}

func openELF(t testing.TB, path string) *elfImage {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { f.Close() })
	m := &elfImage{path: path, file: f, arch: arch.ByMachine(f.Machine), span: arch.Span{Lo: ^arch.Addr(0)}}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		m.segs = append(m.segs, segment{arch.Addr(p.Vaddr), b})
		m.span.Lo = min(m.span.Lo, arch.Addr(p.Vaddr))
		m.span.Hi = max(m.span.Hi, arch.Addr(p.Vaddr+p.Memsz))
	}
	return m
}

// sources opens the call frame information of m.
func (m *elfImage) sources() []Source {
	u := New(m.arch, m, []Image{m}, nil)
	u.open(&u.images[0])
	var s []Source
	for _, k := range u.images[0].sources {
		s = append(s, k.Source)
	}
	return s
}

// libc returns the path of the C library that this test could be running with.
func libc(t testing.TB) string {
	for _, p := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/lib/libc.so.6", "/lib/ld-musl-*.so.1"} {
		if m, _ := filepath.Glob(p); len(m) > 0 {
			return m[0]
		}
	}
	t.Skip("no C library to read")
	return ""
}

// corpusImage returns an image file of the corpus, by name, or "".
func extraImages() []string {
	var list []string
	for _, p := range strings.Fields(os.Getenv("SEAM_UNWIND_ELF")) {
		m, _ := filepath.Glob(p)
		list = append(list, m...)
	}
	return list
}
