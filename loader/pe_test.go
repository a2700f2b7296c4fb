package loader

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// buildPE returns the file of an assembly for x86-64 Linux: .text at RVA
// 0x10200 as the ReadyToRun compiler lays it out, .data behind it with the
// table of functions (directory 3) and a pointer that base relocations move.
func buildPE(stamp uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0x2200)
	copy(b, "MZ")
	le.PutUint32(b[60:], 128)
	copy(b[128:], "PE\x00\x00")
	le.PutUint16(b[132:], 0xfd1d)
	le.PutUint16(b[134:], 3)
	le.PutUint32(b[136:], stamp)
	le.PutUint16(b[148:], 240)
	opt := b[152:]
	le.PutUint16(opt, 0x20b)
	le.PutUint64(opt[24:], 0x180000000)
	le.PutUint32(opt[56:], 0x33200) // SizeOfImage
	le.PutUint32(opt[60:], 0x200)   // SizeOfHeaders
	le.PutUint32(opt[108:], 16)
	dir := func(n int, rva, size uint32) {
		le.PutUint32(opt[112+8*n:], rva)
		le.PutUint32(opt[116+8*n:], size)
	}
	dir(objfile.PEExceptions, 0x22010, 24)
	dir(objfile.PERelocs, 0x33000, 12)
	for i, s := range []struct {
		name                string
		va, size, off, flag uint32
	}{{".text", 0x10200, 0xe00, 0x200, 0x60000020}, {".data", 0x22000, 0x1000, 0x1000, 0xc0000040}, {".reloc", 0x33000, 0x200, 0x2000, 0x42000040}} {
		h := b[392+40*i:]
		copy(h[:8], s.name)
		for k, v := range []uint32{s.size, s.va, s.size, s.off} {
			le.PutUint32(h[8+4*k:], v)
		}
		le.PutUint32(h[36:], s.flag)
	}
	copy(b[0x200:0x1000], fill(0xe00, 1))
	le.PutUint64(b[0x1000:], 0x180000000+0x10200) // &.text
	copy(b[0x1010:], fill(24, 0x40))
	le.PutUint32(b[0x2000:], 0x22000)
	le.PutUint32(b[0x2004:], 12)
	le.PutUint16(b[0x2008:], 10<<12)
	return b
}

// An assembly is mapped twice; both images have their identity and the file's
// bytes, whether the dump has the header page or not.
func TestPEImages(t *testing.T) {
	file, dir := buildPE(0x11223344), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "A.dll"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	const flat, base = 0x7f0000000000, 0x7f0001000000
	for _, header := range []bool{true, false} {
		var b buildCore
		b.thread(1, 0, 0)
		b.mapped(
			fileNote{arch.Span{Lo: flat, Hi: flat + 0x3000}, 0, "/app/A.dll"},
			fileNote{arch.Span{Lo: base, Hi: base + 0x1000}, 0, "/app/A.dll"},
			fileNote{arch.Span{Lo: base + 0x10000, Hi: base + 0x11000}, 0, "/app/A.dll"},
			fileNote{arch.Span{Lo: base + 0x22000, Hi: base + 0x23000}, 0x1000, "/app/A.dll"},
			fileNote{arch.Span{Lo: base + 0x33000, Hi: base + 0x34000}, 0x2000, "/app/A.dll"})
		if header {
			b.loads = []buildLoad{{addr: flat, data: file[:pageSize]}, {addr: base, data: file[:pageSize]}}
		}
		p := b.open(t, &Options{Find: DirFinder(dir)})
		if len(p.Images) != 2 || !p.Images[0].Flat || p.Images[1].Flat {
			t.Fatalf("header %v: images %+v", header, p.Images)
		}
		f, m := p.Images[0], p.Images[1]
		if m.Bias() != base || m.Span().Hi != base+0x34000 || m.Verified() != header || header && (m.ID.Timestamp != 0x11223344 || m.ID.Size != 0x33200) {
			t.Errorf("header %v: %+v at %v", header, m.ID, m.Span())
		}
		for _, c := range []struct {
			im   *Image
			want arch.Addr
		}{{f, flat + 0x1010}, {m, base + 0x22010}} {
			s, ok := c.im.Table(".pdata")
			if !ok || s != (arch.Span{Lo: c.want, Hi: c.want + 24}) {
				t.Errorf("header %v: .pdata at %v %v, want %v", header, s, ok, c.want)
			}
			// RUNTIME_FUNCTIONs are constant though their section is writable.
			if v := p.Memory.View(s.Lo, 24); string(v) != string(fill(24, 0x40)) {
				t.Errorf("header %v: functions % x", header, v)
			}
		}
		if w, ok := p.Memory.Word(base + 0x10200); !ok || w != 0x0807060504030201 {
			t.Errorf("header %v: .text %#x %v", header, w, ok)
		}
		if _, ok := p.Memory.Word(base + 0x22000); ok {
			t.Errorf("header %v: .data is served", header)
		}
		if why, im := p.Memory.Absent(base + 0x22000); why != NotDumped || im != m {
			t.Errorf("header %v: .data: %v", header, why)
		}
		if w, ok := m.FileWord(base + 0x22000); !ok || w != base+0x10200 {
			t.Errorf("header %v: the relocated pointer is %#x %v", header, w, ok)
		}
	}
}

func FuzzPE(f *testing.F) {
	f.Add(buildPE(1), uint32(0x22010))
	f.Add(buildPE(2)[:600], uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, rva uint32) {
		h, err := objfile.ParsePE(data)
		if err != nil {
			return
		}
		metadataParts(data)
		m := &Image{Format: "pe", pe: h, bias: 0x1000, mem: new(Memory), src: &source{p: &Process{}, mapped: data}}
		m.src.once.Do(func() {})
		m.FileView(arch.Addr(rva)+0x1000, 16)
	})
}

func FuzzBundle(f *testing.F) {
	le := binary.LittleEndian
	data := le.AppendUint64(nil, 40)
	data = append(data, bundleMarker...)
	data = le.AppendUint32(data, 6)
	data = le.AppendUint32(data, 0)
	data = le.AppendUint32(data, 1)
	data = append(append(data, 3), "abc"...)
	data = append(data, make([]byte, 40+25)...)
	data = append(append(data, 5), "a.dll"...)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		progs := []objfile.Prog{{Type: 1, Flags: 2, Filesz: uint64(len(data)), Memsz: uint64(len(data))}}
		for _, b := range bundleFiles(data, progs) {
			if len(b.name) > 4096 {
				t.Error("a name of", len(b.name))
			}
		}
	})
}

func TestBundleManifest(t *testing.T) {
	le := binary.LittleEndian
	data := le.AppendUint64(nil, 40)
	data = append(data, bundleMarker...)
	for _, v := range []uint32{6, 0, 1} {
		data = le.AppendUint32(data, v)
	}
	data = append(append(data, 3), "abc"...)
	data = append(data, make([]byte, 40)...)
	data = le.AppendUint64(le.AppendUint64(le.AppendUint64(data, 0x5000), 77), 0)
	data = append(append(data, 1, 5), "a.dll"...)
	progs := []objfile.Prog{{Type: 1, Flags: 2, Filesz: uint64(len(data)), Memsz: uint64(len(data))}}
	got := bundleFiles(data, progs)
	if len(got) != 1 || got[0] != (bundleFile{"a.dll", 0x5000, 77, 0}) {
		t.Errorf("%+v", got)
	}
	// Another application on the same host.
	b := buildCore{loads: []buildLoad{{addr: 0x10000, data: data}}}
	m := &Image{mem: b.open(t, nil).Memory, bias: 0x10000}
	if why := m.checkBundle(data, progs); why != "" {
		t.Error(why)
	}
	le.PutUint64(data, 48)
	if why := m.checkBundle(append([]byte(nil), data...), progs); why != "" {
		t.Log("refused:", why)
	} else {
		t.Error("another application's bundle passes")
	}
}
