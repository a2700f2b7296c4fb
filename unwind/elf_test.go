package unwind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// An elfImage is an ELF file without a process.
type elfImage struct {
	*objfile.Image
	path string
	arch *arch.Arch
	span arch.Span
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
	img, err := objfile.NewImage(b, bias)
	if err != nil {
		t.Fatal(path, err)
	}
	return &elfImage{img, path, img.Arch(), img.Span()}
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
