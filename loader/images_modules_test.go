package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
	"github.com/seamwalk/seam/unwind"
)

// openTinyDump opens the dump, which finds files in dir.
func openTinyDump(t testing.TB, d *tinyDump, dir string) *Process {
	t.Helper()
	p, err := openBytes("tiny", d.bytes(), Options{Find: DirFinder(dir), Limits: Limits{}.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// put writes a file below dir.
func put(t testing.TB, data []byte, dir string, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{dir}, elem...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A list of modules is all that a dump needs for its images: what they are comes
// from their first page if the dump has it, else from the list; where their
// addresses begin comes from their headers, or those of the file.
func TestModules(t *testing.T) {
	lib := built(t, libSource, "-shared", "-fPIC")
	other := built(t, libSource+"int more = 1;", "-shared", "-fPIC")
	exe := built(t, "int main(void) { return 0; }", "-no-pie")
	asm := buildPE(0x11223344)
	f, err := elf.NewFile(bytes.NewReader(exe))
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_LOAD })
	exeBase := arch.Addr(f.Progs[linked].Vaddr)
	if exeBase == 0 {
		t.Skip("gcc links no program for an address")
	}
	dir := t.TempDir()
	libPath := put(t, lib, dir, idOf(t, lib), "l.so")
	exePath := put(t, exe, dir, idOf(t, exe), "exe")
	asmPath := put(t, asm, dir, "A.dll", "1122334433200", "A.dll")
	put(t, other, dir, "other.so")
	put(t, buildPE(0x55), dir, "B.dll")

	d := tinyDump{machine: f.Machine, threads: []Thread{{ID: 7}}}
	type want struct {
		name, format, file string
		bias               uint64
		id                 ImageID
		why                Absence
	}
	wants := map[arch.Addr]want{}
	at := arch.Addr(0x7f0000000000)
	add := func(m module, head []byte, w want) {
		if m.base == 0 {
			m.base, at = at, at+0x1000000
		}
		if w.bias == 0 && w.format != "" {
			w.bias = uint64(m.base)
		}
		if head != nil {
			d.ranges = append(d.ranges, tinyRange{m.base, head[:pageSize], elf.PF_R})
		}
		d.modules = append(d.modules, m)
		wants[m.base] = w
	}
	libID, exeID, asmID := ImageID{BuildID: idOf(t, lib)}, ImageID{BuildID: idOf(t, exe)}, ImageID{Timestamp: 0x11223344, Size: 0x33200}
	add(module{size: 0x5000, path: "/lib/l.so"}, lib, want{"l.so", "elf", libPath, 0, libID, Present})
	add(module{size: 0x5000, path: "/opt/l.so", id: libID}, nil, want{"l.so", "elf", libPath, 0, libID, Present})
	// The header in the dump is another's than the list says: the list is out of date.
	add(module{size: 0x5000, path: "/old/l.so", id: ImageID{BuildID: "1234"}}, lib, want{"l.so", "elf", libPath, 0, libID, Present})
	add(module{base: exeBase, size: 0x5000, path: "/bin/exe", id: exeID}, nil, want{"exe", "elf", exePath, ^uint64(0), exeID, Present})
	add(module{size: 0x5000, path: "/lib/other.so", id: ImageID{BuildID: "1234"}}, nil, want{"other.so", "elf", "", 0, ImageID{BuildID: "1234"}, ImageDiffers})
	add(module{size: 0x34000, path: `C:\app\A.dll`, id: asmID}, nil, want{"A.dll", "pe", asmPath, 0, asmID, Present})
	add(module{size: 0x34000, path: `D:\app\A.dll`}, asm, want{"A.dll", "pe", asmPath, 0, asmID, Present})
	add(module{size: 0x34000, path: `C:\app\B.dll`, id: ImageID{Timestamp: 0x56, Size: 0x33200}}, nil, want{"B.dll", "pe", "", 0, ImageID{Timestamp: 0x56, Size: 0x33200}, ImageDiffers})
	add(module{size: 0x34000, path: `C:\app\gone.dll`}, nil, want{"gone.dll", "pe", "", 0, ImageID{}, ImageNotFound})
	add(module{size: 0x4000}, nil, want{"", "elf", "", 0, ImageID{}, ImageNotFound})
	d.modules = append(d.modules, module{base: ^arch.Addr(0xfff), size: 0x10000, path: "/lib/end.so"})

	p := openTinyDump(t, &d, dir)
	if len(p.Images) != len(wants) {
		t.Errorf("%d images of %d modules", len(p.Images), len(wants))
	}
	if !warned(p, "module_bad") {
		t.Errorf("no word of a module that goes past the end of the address space: %v", p.Warnings)
	}
	for _, m := range p.Images {
		w := wants[m.Span().Lo]
		if w.bias == ^uint64(0) {
			w.bias = 0
		}
		path, why, text := m.File()
		id := m.ID
		id.Name = ""
		if m.ID.Name != w.name || m.Format != w.format || m.Bias() != w.bias || id != w.id || path != w.file || why != w.why {
			t.Errorf("%v: %s, %s, bias %#x, %+v, file %q, %v (%s); want %+v", m.Span(), m.ID.Name, m.Format, m.Bias(), id, path, why, text, w)
		}
		if m.Verified() != (w.file != "") {
			t.Errorf("%v %s: verified %v", m.Span(), m.ID.Name, m.Verified())
		}
		if p.ImageAt(m.Span().Hi-1) != m {
			t.Errorf("%v: its last byte is in another image", m.Span())
		}
	}
}

// A thread of a third kind of dump is walked from a function of one library, of
// which the dump has no byte, to its caller in another one.
func TestWalkTiny(t *testing.T) {
	inner := built(t, "int leaf(void) { return 42; }", "-shared", "-fPIC")
	outer := built(t, "int outer(int (*f)(void)) { return f() + 1; }", "-shared", "-fPIC", "-fomit-frame-pointer")
	if h, err := objfile.ParseELFHeader(inner); err != nil || h.Machine != elf.EM_X86_64 {
		t.Skip("gcc does not compile for x86-64")
	}
	dir := t.TempDir()
	put(t, inner, dir, idOf(t, inner), "inner.so")
	put(t, outer, dir, idOf(t, outer), "outer.so")
	const innerBase, outerBase, stack = 0x7f0000000000, 0x7f0001000000, 0x7ffc00001000
	leaf, _ := function(t, inner, "leaf")
	caller, code := function(t, outer, "outer")
	call := bytes.Index(code, []byte{0xff, 0xd7}) // call *%rdi
	if call < 0 {
		t.Skipf("gcc calls otherwise: % x", code)
	}
	le := binary.LittleEndian
	words := make([]byte, pageSize)
	le.PutUint64(words, outerBase+caller+uint64(call)+2) // where leaf returns to
	d := tinyDump{
		machine: elf.EM_X86_64,
		ranges: []tinyRange{
			{outerBase, outer[:pageSize], elf.PF_R},
			{stack, words, elf.PF_R | elf.PF_W},
		},
		modules: []module{
			{base: innerBase, size: 0x5000, path: "/opt/inner.so", id: ImageID{BuildID: idOf(t, inner)}},
			{base: outerBase, size: 0x5000, path: "/opt/outer.so"},
		},
		threads: []Thread{{ID: 7}},
	}
	cpu := arch.ByMachine(elf.EM_X86_64)
	d.threads[0].Regs.Set(cpu.PC, innerBase+leaf)
	d.threads[0].Regs.Set(cpu.SP, stack)
	p := openTinyDump(t, &d, dir)
	if p.Format != "tiny" || len(p.Threads) != 1 || p.Threads[0].ID != 7 {
		t.Fatalf("format %q, threads %v", p.Format, p.Threads)
	}
	images := make([]unwind.Image, len(p.Images))
	for i, m := range p.Images {
		images[i] = m
	}
	u := unwind.New(p.ABI, p.Memory, images, &unwind.Options{Executable: p.Executable})
	frames, stop := u.NewWalker().Walk(nil, &p.Threads[0].Regs)
	got := ""
	for _, f := range frames {
		name := "?"
		if m := p.ImageAt(f.PC.Lookup()); m != nil {
			name = fmt.Sprintf("%s+%#x", m.ID.Name, uint64(f.PC.Addr)-m.Bias())
		}
		got += fmt.Sprintf("%s %v %v\n", name, f.SP, f.By)
	}
	want := fmt.Sprintf("inner.so+%#x %v %v\n", leaf, arch.Addr(stack), unwind.ByContext) +
		fmt.Sprintf("outer.so+%#x %v %v\n", caller+uint64(call)+2, arch.Addr(stack+8), unwind.ByEhFrame)
	if got != want || stop.Reason != unwind.ZeroReturn {
		t.Errorf("walked\n%sthen %v; want\n%s", got, stop, want)
	}
}

// function returns the link address and the code of a function of an ELF file.
func function(t testing.TB, file []byte, name string) (at uint64, code []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		if s.Name != name {
			continue
		}
		sec := f.Sections[s.Section]
		data, err := sec.Data()
		if err != nil {
			t.Fatal(err)
		}
		return s.Value, data[s.Value-sec.Addr:][:s.Size]
	}
	t.Fatalf("no function %s", name)
	return 0, nil
}

// A list can have a PE file at the path of an ELF file, and the name that stands
// for an assembly without one: that makes no bundle, and no second mapping of it.
func TestModulesOfOnePath(t *testing.T) {
	lib, dir := built(t, libSource, "-shared", "-fPIC"), t.TempDir()
	put(t, lib, dir, idOf(t, lib), "?")
	d := tinyDump{machine: elf.EM_X86_64, threads: []Thread{{ID: 1}}, modules: []module{
		{base: 0x10000, size: 0x5000, path: "/x/?", id: ImageID{BuildID: idOf(t, lib)}},
		{base: 0x20000, size: 0x5000, path: "/x/?", id: ImageID{Timestamp: 1, Size: 0x5000}},
	}}
	if p := openTinyDump(t, &d, dir); len(p.Images) != 2 || p.Images[0].Format != "elf" || p.Images[1].Format != "pe" {
		t.Errorf("%d images", len(p.Images))
	}
}

// Lists of modules are forged: whatever they claim, images are in order and do not
// overlap, and every byte of them can be asked for.
func FuzzModules(f *testing.F) {
	lib := []byte{}
	if file, err := os.ReadFile("/proc/self/exe"); err == nil {
		lib = file[:min(len(file), 2*pageSize)]
	}
	asm := buildPE(0x11223344)
	d := tinyDump{machine: elf.EM_X86_64, threads: []Thread{{ID: 1}},
		ranges: []tinyRange{{0x10000, asm[:pageSize], elf.PF_R}, {0x400000, lib, elf.PF_R}},
		modules: []module{{base: 0x10000, size: 0x34000, path: "A.dll"}, {base: 0x400000, size: 0x1000, path: "/bin/x"},
			{base: 0x400800, size: 1 << 60, path: "/bin/y", id: ImageID{BuildID: "12"}}, {base: ^arch.Addr(0), size: 1}}}
	f.Add(d.bytes())
	dir := f.TempDir()
	put(f, asm, dir, "A.dll")
	put(f, asm, dir, "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isTiny(data) {
			return
		}
		p, err := openBytes("tiny", data, Options{Find: DirFinder(dir), Limits: Limits{Threads: 10, Images: 100}.withDefaults()})
		if err != nil {
			return
		}
		defer p.Close()
		last := arch.Addr(0)
		for _, m := range p.Images {
			s := m.Span()
			if s.Lo < last || s.Lo >= s.Hi {
				t.Fatalf("an image at %v, behind %v", s, last)
			}
			last = s.Hi
			for _, a := range []arch.Addr{s.Lo, s.Lo + (s.Hi-s.Lo)/2, s.Hi - 1} {
				p.Memory.Word(a)
				p.Memory.Absent(a)
				p.Executable(a)
			}
			m.File()
			m.Lookup("main")
			m.Section(".text")
		}
	})
}
