package clr

import (
	"os"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// fakeRuntime8 is a .NET 8 with the layouts of Linux, without an image.
func fakeRuntime8(t testing.TB, p *loader.Process) *Runtime {
	t.Helper()
	text, err := layouts.ReadFile("layouts/net8-linux-amd64.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{proc: p, arch: arch.AMD64, Version: "8.0.31", Image: &loader.Image{}}
	if p != nil {
		r.mem, r.arch = p.Memory, p.Arch
	}
	ptrs := make([]uint64, maxPointers)
	ptrs[0] = uint64(fakePointer(0))
	if r.data, err = parseContract(text, ptrs); err != nil {
		t.Fatal(err)
	}
	if err := r.layouts(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWrittenTexts: the texts that are written by hand give all that is read of their
// releases.
func TestWrittenTexts(t *testing.T) {
	for _, test := range []struct {
		name, version string
		cpu           *arch.Arch
	}{
		{"net9-linux-amd64", "9.0.20", arch.AMD64},
		{"net8-linux-amd64", "8.0.31", arch.AMD64},
		{"net8-linux-arm64", "8.0.31", arch.ARM64},
	} {
		text, err := layouts.ReadFile("layouts/" + test.name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		ptrs := make([]uint64, maxPointers)
		ptrs[0] = uint64(fakePointer(0))
		r := &Runtime{arch: test.cpu, Version: test.version, Image: &loader.Image{}}
		if r.data, err = parseContract(text, ptrs); err != nil {
			t.Fatal(err)
		}
		if err := r.layouts(); err != nil || len(r.Lacks) > 0 {
			t.Errorf("%s: %v, lacking %v", test.name, err, r.Lacks)
		}
		if l := &r.frameLayout; len(l.saved) == 0 || l.HijackRegs < 0 && len(l.hijack) == 0 {
			t.Errorf("%s: no registers in a TransitionBlock, or none in HijackArgs", test.name)
		}
	}
}

// fakeModule8 makes an emitted Module of .NET 8 whose metadata is saved, and a class
// of it.
func fakeModule8(t testing.TB) (m fakeMemory, model *Runtime) {
	t.Helper()
	data, err := os.ReadFile("../../internal/ecma/testdata/scenarios.metadata")
	if err != nil {
		t.Fatal(err)
	}
	const buffer = fakeImage + 0x1000
	m, model = fakeMemory{}, fakeRuntime8(t, nil)
	n := &model.names
	m.word(field(fakeModule, n.older.File), fakeFile8)
	m.word(field(fakeFile8, n.older.Image), 0)
	m.word(field(fakeModule, n.ModDynamic), fakeImage)
	m.put(field(fakeImage, n.older.BufferSize), uint64(len(data)), 4)
	m.word(field(fakeImage, n.older.Buffer), buffer)
	m.bytes(buffer, data)
	m.put(field(fakeClass8, n.older.TypeRow), 2, 2)
	m.word(field(fakeClass8, n.MTModule), fakeModule)
	m.put(field(fakeClass8, n.MTFlags), 0, 4)
	return m, model
}

const (
	fakeFile8   = arch.Addr(0x10900000)
	fakeImage8  = arch.Addr(0x10a00000)
	fakeLayout8 = arch.Addr(0x10b00000)
	fakeClass8  = arch.Addr(0x10c00000)
)

// TestOlderModule follows a Module of .NET 8 to its image and to the image's path,
// and takes each word on the way away once.
func TestOlderModule(t *testing.T) {
	m, model := fakeModule8(t)
	l := model.names.older
	const base, path = arch.Addr(0x7000_0000), fakeImage8 + 0x1000
	m.word(field(fakeFile8, l.Image), fakeImage8)
	m.word(field(fakeImage8, l.Path+l.Buffer), path)
	m.utf16(path, "/app/old.dll")
	m.word(field(fakeImage8, l.Loaded), fakeLayout8)
	m.word(field(fakeLayout8, l.Base), base)
	r := fakeRuntime8(t, m.core(t))
	if got, missing := r.moduleBase(fakeModule); got != base || missing != 0 {
		t.Errorf("its image is at %v, missing %v; want %v", got, missing, base)
	}
	if name := r.moduleName(fakeModule); name != "/app/old.dll" {
		t.Errorf("its name is %q", name)
	}
	for _, at := range []arch.Addr{field(fakeModule, l.File), field(fakeFile8, l.Image), field(fakeImage8, l.Loaded), field(fakeLayout8, l.Base)} {
		was := m[at]
		delete(m, at)
		r := fakeRuntime8(t, m.core(t))
		if got, missing := r.moduleBase(fakeModule); got != 0 || missing != at {
			t.Errorf("without %v its image is at %v, missing %v", at, got, missing)
		}
		if mod := r.module(fakeModule); mod.err == nil {
			t.Errorf("without %v it has metadata", at)
		}
		m[at] = was
	}
	m.word(field(fakeFile8, l.Image), 0)
	if paths := fakeRuntime8(t, m.core(t)).modulePaths(fakeModule); paths != [2]arch.Addr{} {
		t.Errorf("without an image its paths are at %v", paths)
	}
}

// TestOlderNames: a class of an emitted module has the name that the saved metadata
// have, and none where its row or the metadata are not there.
func TestOlderNames(t *testing.T) {
	m, model := fakeModule8(t)
	n := &model.names
	want, err := fakeRuntime8(t, m.core(t)).className(fakeClass8)
	if err != nil || want == "" || want == "?" {
		t.Fatalf("%q, %v", want, err)
	}
	row := field(fakeClass8, n.older.TypeRow)
	for _, test := range []struct {
		what   string
		change func()
		in     string
	}{
		{"no row", func() { delete(m, row&^7) }, "token of a MethodTable"},
		{"a row that two bytes do not hold", func() { m.put(row, noTypeRow, 2) }, "is not in it"},
		{"a row beyond the table", func() { m.put(row, 0xfffe, 2) }, ""},
		{"no size", func() { delete(m, field(fakeImage, n.older.BufferSize)) }, "size of its metadata"},
		{"no address", func() { delete(m, field(fakeImage, n.older.Buffer)) }, "address of its metadata"},
		{"an address of nothing", func() { m.word(field(fakeImage, n.older.Buffer), 0) }, ""},
		{"a size of nothing", func() { m.put(field(fakeImage, n.older.BufferSize), 4, 4) }, ""},
	} {
		m, _ = fakeModule8(t)
		test.change()
		got, err := fakeRuntime8(t, m.core(t)).className(fakeClass8)
		if err == nil || !strings.Contains(err.Error(), test.in) {
			t.Errorf("%s: %q, %v", test.what, got, err)
		}
	}
}

// FuzzOlderModule damages two words of a made Module of .NET 8: its name and the name
// of its class end in a value or an error.
func FuzzOlderModule(f *testing.F) {
	m, model := fakeModule8(f)
	l := model.names.older
	f.Add(uint64(field(fakeModule, l.File)), uint64(fakeModule), uint64(fakeImage), ^uint64(0))
	f.Add(uint64(field(fakeFile8, l.Image)), uint64(fakeFile8), uint64(field(fakeImage, l.Buffer)), uint64(fakeImage))
	f.Fuzz(func(t *testing.T, at1, v1, at2, v2 uint64) {
		old := map[arch.Addr]uint64{}
		for _, p := range [][2]uint64{{at1, v1}, {at2, v2}} {
			a := arch.Addr(p[0] &^ 7)
			if _, again := old[a]; !again {
				old[a] = m[a]
			}
			m[a] = p[1]
		}
		if len(old) > 0 && (at1&^7 > 1<<40 || at2&^7 > 1<<40) {
			t.Skip("no address of a process")
		}
		r := fakeRuntime8(t, m.core(t))
		for a, v := range old {
			if m[a] = v; v == 0 {
				delete(m, a)
			}
		}
		if mod := r.module(fakeModule); mod.meta == nil && mod.err == nil {
			t.Error("neither metadata nor an error")
		}
		if name, err := r.className(fakeClass8); name == "" && err == nil {
			t.Error("neither a name nor an error")
		}
	})
}
