package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// An elfImage serves an ELF file as an Image and its Memory.
type elfImage struct {
	path string
	file *elf.File
	arch *arch.Arch
	segs []segment
	span arch.Span
	bias uint64
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
func (m *elfImage) Bias() uint64    { return m.bias }

func (m *elfImage) Table(name string) (arch.Span, bool) {
	s := m.file.Section(name)
	if s == nil || s.Addr == 0 || s.Type == elf.SHT_NOBITS {
		return arch.Span{}, false
	}
	lo := arch.Addr(s.Addr + m.bias)
	return arch.Span{Lo: lo, Hi: lo + arch.Addr(s.Size)}, true
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
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	return readELF(t, path, b, 0)
}

// readELF takes the file b as mapped with a bias.
func readELF(t testing.TB, path string, b []byte, bias uint64) *elfImage {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(path, err)
	}
	m := &elfImage{path: path, file: f, arch: arch.ByMachine(f.Machine), span: arch.Span{Lo: ^arch.Addr(0)}, bias: bias}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		at := arch.Addr(p.Vaddr + bias)
		m.segs = append(m.segs, segment{at, b})
		m.span.Lo = min(m.span.Lo, at)
		m.span.Hi = max(m.span.Hi, at+arch.Addr(p.Memsz))
	}
	return m
}

// sources opens the call frame information of m.
func (m *elfImage) sources() []Source {
	u := New(m.arch.On(arch.Linux), m, []Image{m}, nil)
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

// extraImages are more files to compare: patterns in SEAM_UNWIND_ELF.
func extraImages() []string {
	var list []string
	for _, p := range strings.Fields(os.Getenv("SEAM_UNWIND_ELF")) {
		m, _ := filepath.Glob(p)
		list = append(list, m...)
	}
	return list
}
