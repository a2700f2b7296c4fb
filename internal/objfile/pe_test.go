package objfile

import (
	"bytes"
	"compress/flate"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
)

// checkPE compares what is read of a PE file with what debug/pe reads.
func checkPE(t *testing.T, name string, data []byte) {
	h, err := ParsePE(data)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	// debug/pe does not know the machines of ReadyToRun images for other systems
	// than Windows, which are those of Windows, changed by a constant.
	machine := le16(data[le32(data[60:])+4:])
	known := slices.Clone(data)
	binary.LittleEndian.PutUint16(known[le32(data[60:])+4:], pe.IMAGE_FILE_MACHINE_AMD64)
	want, err := pe.NewFile(bytes.NewReader(known))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var base uint64
	var imageSize, headersSize uint32
	var dirs []pe.DataDirectory
	switch o := want.OptionalHeader.(type) {
	case *pe.OptionalHeader64:
		base, imageSize, headersSize, dirs = o.ImageBase, o.SizeOfImage, o.SizeOfHeaders, o.DataDirectory[:o.NumberOfRvaAndSizes]
	case *pe.OptionalHeader32:
		base, imageSize, headersSize, dirs = uint64(o.ImageBase), o.SizeOfImage, o.SizeOfHeaders, o.DataDirectory[:o.NumberOfRvaAndSizes]
	}
	if h.Machine != machine || h.Timestamp != want.TimeDateStamp || h.Base != base || h.ImageSize != imageSize || h.HeadersSize != headersSize {
		t.Errorf("%s: %+v, want %+v, %#x, %d, %d", name, h, want.FileHeader, base, imageSize, headersSize)
	}
	if len(h.Dirs) != len(dirs) || len(h.Sections) != len(want.Sections) {
		t.Fatalf("%s: %d directories, %d sections; want %d, %d", name, len(h.Dirs), len(h.Sections), len(dirs), len(want.Sections))
	}
	for i, d := range h.Dirs {
		if d != (PEDir{dirs[i].VirtualAddress, dirs[i].Size}) {
			t.Errorf("%s: directory %d: %+v, want %+v", name, i, d, dirs[i])
		}
	}
	img, err := NewImage(data, 1<<32)
	if err != nil {
		t.Fatal(name, err)
	}
	for i, s := range h.Sections {
		w := want.Sections[i]
		if strings.HasPrefix(s.Name, "/") {
			w.Name = s.Name // mingw keeps longer names in a string table, where PE has none
		}
		if s.Name != w.Name || s.VA != w.VirtualAddress || s.VSize != w.VirtualSize || s.RawOff != w.Offset || s.RawSize != w.Size || s.Characteristics != w.Characteristics {
			t.Errorf("%s: section %d: %+v, want %+v", name, i, s, w.SectionHeader)
		}
		b, err := w.Data()
		if err != nil || len(b) == 0 {
			continue
		}
		if !bytes.Equal(h.Section(data, s.Name), b) && h.Named(s.Name) == &h.Sections[i] {
			t.Errorf("%s: section %s is not what debug/pe reads", name, s.Name)
		}
		if got := img.View(1<<32+arch.Addr(s.VA), len(b)); !bytes.Equal(got, b) {
			t.Errorf("%s: section %s is mapped as something else", name, s.Name)
		}
		if exec, known := img.Executable(1<<32 + arch.Addr(s.VA)); !known || exec != (s.Characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0) {
			t.Errorf("%s: section %s is executable: %v %v", name, s.Name, exec, known)
		}
	}
}

// Headers, directories and sections are what debug/pe reads, of a DLL and of the
// assemblies that the recorded dumps name.
func TestPEAsDebugPE(t *testing.T) {
	t.Run("dll", func(t *testing.T) { checkPE(t, "l.dll", buildPE(t)) })
	t.Run("corpus", func(t *testing.T) {
		n := 0
		err := filepath.WalkDir(filepath.Join(corpus.Images(t), "pe"), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".dll" {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				checkPE(t, path, data)
				n++
			}
			return err
		})
		if err != nil || n == 0 {
			t.Errorf("%d files, %v", n, err)
		}
	})
}

// Each export is found at the RVA that llvm-readobj lists, and no other name is.
func TestExports(t *testing.T) {
	data := buildPE(t)
	const base = 0x7f0000000000
	img, err := NewImage(data, base)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := img.pe.Dir(PEExports)
	if !ok {
		t.Fatal("no directory of exports")
	}
	list := regexp.MustCompile(`Name: (\S+)\s+RVA: 0x([0-9A-F]+)`).FindAllStringSubmatch(output(t, data, "llvm-readobj", "--coff-exports"), -1)
	for _, m := range list {
		want, _ := strconv.ParseUint(m[2], 16, 32)
		if got, ok := Export(img, base, base+arch.Addr(d.RVA), m[1]); !ok || uint64(got) != want {
			t.Errorf("%s at %#x %v, want %#x", m[1], got, ok, want)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d exports", len(list))
	}
	for _, name := range []string{"", "a", "not_there", "zzz"} {
		if rva, ok := Export(img, base, base+arch.Addr(d.RVA), name); ok {
			t.Errorf("%q is at %#x", name, rva)
		}
	}
}

// The CodeView identity is the one that llvm-readobj prints.
func TestCodeView(t *testing.T) {
	data := buildPE(t)
	const base = 0x7f0000000000
	img, err := NewImage(data, base)
	if err != nil {
		t.Fatal(err)
	}
	out := output(t, data, "llvm-readobj", "--coff-debug-directory")
	m := regexp.MustCompile(`PDBGUID: \(([0-9A-F ]+)\)\s+PDBAge: (\d+)\s+PDBFileName: (.*)`).FindStringSubmatch(out)
	if m == nil {
		t.Skipf("llvm-readobj prints no CodeView record that is known here: %s", out)
	}
	d := img.pe.Debug(img, img.pe.Mapped(base))
	c, ok := d.CodeView, d.Named
	if got := fmt.Sprintf("% X", c.GUID); !ok || got != m[1] || fmt.Sprint(c.Age) != m[2] || c.Path != m[3] {
		t.Errorf("%s, age %d, %q, %v; want %v", got, c.Age, c.Path, ok, m[1:])
	}
	// The first three parts of a GUID are numbers, written with the highest digit
	// first.
	c = CodeView{GUID: [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Age: 0x1f}
	if want := "030201000504070608090A0B0C0D0E0F1f"; c.String() != want {
		t.Errorf("%s, want %s", c.String(), want)
	}
	if c.Portable = true; c.String() != "030201000504070608090A0B0C0D0E0FFFFFFFFF" {
		t.Errorf("%s for a portable PDB", c.String())
	}
}

// packed returns b as images embed a portable PDB, claiming a size.
func packed(t testing.TB, b []byte, size uint32) []byte {
	var out bytes.Buffer
	out.WriteString("MPDB")
	binary.Write(&out, binary.LittleEndian, size)
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// An embedded PDB is unpacked if its size is the one that it claims.
func TestUnpackPDB(t *testing.T) {
	want := bytes.Repeat([]byte("sequence points "), 1000)
	if got, err := UnpackPDB(packed(t, want, uint32(len(want)))); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	broken := packed(t, want, uint32(len(want)))
	broken[12] ^= 0xff
	for name, b := range map[string][]byte{
		"none":    nil,
		"mark":    []byte("XPDB\x01\x00\x00\x00abcdefgh"),
		"shorter": packed(t, want, uint32(len(want)-1)),
		"longer":  packed(t, want, uint32(len(want)+1)),
		"huge":    packed(t, want, 1<<31),
		"zero":    packed(t, nil, 0),
		"cut":     packed(t, want, uint32(len(want)))[:20],
		"broken":  broken,
	} {
		if got, err := UnpackPDB(b); err == nil {
			t.Errorf("%s: %d bytes and no error", name, len(got))
		}
	}
}

// A size that an embedded PDB claims takes no memory.
func FuzzUnpackPDB(f *testing.F) {
	f.Add(packed(f, []byte("BSJB and so on"), 14))
	f.Add(packed(f, []byte("BSJB and so on"), 1<<27))
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := UnpackPDB(b); err == nil && len(out) > 1100*len(b) {
			t.Errorf("%d bytes of %d", len(out), len(b))
		}
	})
}

// Numbers that a PE file of any bytes claims lead to no panic and no endless loop.
func FuzzPE(f *testing.F) {
	data := buildPE(f)
	f.Add(data, uint32(0x1000), "twice")
	f.Add(data[:600], uint32(0), "")
	f.Fuzz(func(t *testing.T, data []byte, rva uint32, name string) {
		h, err := ParsePE(data)
		if err != nil {
			return
		}
		if off, n, ok := h.FileOff(rva); ok && off+n < off {
			t.Errorf("FileOff(%#x) = %#x, %#x", rva, off, n)
		}
		if len(h.Raw) > len(data) || len(h.Sections)*peSectionSize > len(data) {
			t.Error("more headers than bytes")
		}
		h.Section(data, name)
		r := h.Relocations(data)
		if r.Len() > len(data)/2 {
			t.Errorf("%d relocations in %d bytes", r.Len(), len(data))
		}
		if b := h.LinkTime(data, rva, 16); b != nil {
			r.Apply(uint64(rva), b, 0x1000)
		}
		h.Debug(Bytes(data), h.Flat(0))
		if img, err := NewImage(data, 1<<32); err == nil {
			useImage(t, img, arch.Addr(rva), name)
			h.Debug(img, h.Mapped(1<<32))
		}
	})
}
