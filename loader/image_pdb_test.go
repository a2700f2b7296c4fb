package loader

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/internal/objfile"
)

// shippedPDB returns the PDB that ships with a dump, and its identity.
func shippedPDB(t testing.TB, dump string) ([]byte, ecma.PDBID) {
	t.Helper()
	b, err := os.ReadFile("../testdata/dumps/" + dump + "/scenarios.pdb")
	if err != nil {
		t.Fatal(err)
	}
	id, err := ecma.ReadPDBID(objfile.Bytes(b), 0, uint32(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return b, id
}

// withDebug gives an assembly of buildPE's a debug directory: a portable CodeView
// and, if embedded is not nil, a PDB within.
func withDebug(file []byte, id ecma.PDBID, path string, embedded []byte) []byte {
	const rva, off = 0x10200, 0x200 // of .text
	le := binary.LittleEndian
	b := bytes.Clone(file)
	entry := func(n int, typ, stamp uint32, at, size int) {
		e := b[off+28*n:]
		clear(e[:28])
		le.PutUint32(e[4:], stamp)
		le.PutUint16(e[8:], 0x100)
		le.PutUint16(e[10:], 0x504d)
		le.PutUint32(e[12:], typ)
		le.PutUint32(e[16:], uint32(size))
		le.PutUint32(e[20:], uint32(rva+at))
		le.PutUint32(e[24:], uint32(off+at))
	}
	entry(0, 2, id.Stamp, 0x80, 25+len(path))
	n := 1
	copy(b[off+0x80:], "RSDS")
	copy(b[off+0x84:], id.GUID[:])
	le.PutUint32(b[off+0x94:], 1)
	copy(b[off+0x98:], path+"\x00")
	if embedded != nil {
		const at = 0x200
		n++
		entry(1, 17, 0, at, len(embedded))
		copy(b[off+at:], embedded)
	}
	le.PutUint32(b[152+112+8*objfile.PEDebug:], rva)
	le.PutUint32(b[152+116+8*objfile.PEDebug:], uint32(28*n))
	return b
}

// packPDB packs a PDB as images embed it.
func packPDB(t testing.TB, pdb []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("MPDB")
	binary.Write(&out, binary.LittleEndian, uint32(len(pdb)))
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	w.Write(pdb)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A PDB is found where image files are, by its identity; one of another build is
// refused, and both identities are told.
func TestPDB(t *testing.T) {
	pdb, id := shippedPDB(t, "net10-hello")
	other, otherID := shippedPDB(t, "net10-hello-arm64")
	key := "D8BF742B57ED41C1AF8D5E2ABF5E2880FFFFFFFF"
	dirs := func(dir string) Finder { return DirFinder(filepath.Join(dir, "images")) }
	one := func(name string) func(string) Finder {
		return func(dir string) Finder {
			f, err := FileFinder(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	for _, c := range []struct {
		name string
		pdb  []byte
		at   string // under dir
		find func(dir string) Finder
		want Absence
		text string
	}{
		{"beside the image", pdb, "app/A.pdb", func(string) Finder { return PathFinder() }, Present, ""},
		{"where the compiler had it", pdb, "obj/A.pdb", func(string) Finder { return PathFinder() }, Present, ""},
		{"beside the dump", pdb, "A.pdb", func(dir string) Finder { return BesideFinder(filepath.Join(dir, "core")) }, Present, ""},
		{"in a plain tree", pdb, "images/x/y/a.PDB", dirs, Present, ""},
		{"in a symbol server's tree", pdb, "images/A.pdb/" + key + "/A.pdb", dirs, Present, ""},
		{"of such trees by format", pdb, "images/pdb/A.pdb/" + key + "/A.pdb", dirs, Present, ""},
		{"in a tree of small letters", pdb, "images/a.pdb/" + strings.ToLower(key) + "/a.pdb", dirs, Present, ""},
		{"beside the image's file", pdb, "elsewhere/A.pdb", one("elsewhere/A.dll"), Present, ""},
		{"one file", pdb, "renamed.pdb", one("renamed.pdb"), Present, ""},
		{"nowhere", pdb, "other/A.pdb", dirs, ImageNotFound, ""},
		{"no finder", pdb, "app/A.pdb", func(string) Finder { return nil }, ImageNotFound, ""},
		{"another build", other, "images/A.pdb", dirs, ImageDiffers, "A.pdb is not the A.pdb of the dump: its id is " + otherID.String() + ", not " + id.String()},
		{"cut", pdb[:40], "images/A.pdb", dirs, ImageDiffers, "it is no portable PDB"},
		{"another form", []byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS"), "images/A.pdb", dirs, ImageDiffers, "of the form that native compilers write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := withDebug(buildPE(0x11223344), id, filepath.Join(dir, "obj", "A.pdb"), nil)
			for at, b := range map[string][]byte{c.at: c.pdb, "elsewhere/A.dll": file} {
				path := filepath.Join(dir, at)
				os.MkdirAll(filepath.Dir(path), 0o700)
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			const base = 0x7f0000000000
			var b buildCore
			b.thread(1, 0, 0)
			b.mapped(fileNote{arch.Span{Lo: base, Hi: base + 0x3000}, 0, filepath.Join(dir, "app", "A.dll")})
			b.loads = append(b.loads, buildLoad{addr: base, data: file[:0x1000]})
			p := b.open(t, &Options{Find: c.find(dir)})
			f := p.PDB(base)
			if f == nil || f.Name != "A.pdb" || f.ID != key {
				t.Fatalf("%+v", f)
			}
			path, why, text := f.File()
			if why != c.want || !strings.Contains(text, c.text) || (path != "") != (why == Present) {
				t.Errorf("%q, %v, %q", path, why, text)
			}
			if got := f.Bytes(); bytes.Equal(got, c.pdb) != (why == Present) {
				t.Errorf("%d bytes", len(got))
			}
			if warned(p, "pdb_differs") != (c.want == ImageDiffers) {
				t.Errorf("warnings: %v", p.Problems())
			}
			if p.PDB(base) != f {
				t.Error("another one when asked again")
			}
		})
	}
}

// An embedded PDB is read from the assembly's image in memory, which may have no
// file: mapped section by section or as its file is. One that is broken or of
// another build is not taken.
func TestEmbeddedPDB(t *testing.T) {
	pdb, id := shippedPDB(t, "net10-hello-arm64")
	_, otherID := shippedPDB(t, "net10-hello")
	pdb = pdb[:2048] // whatever its tables say, the image of the test has no room for more
	packed := packPDB(t, pdb)
	broken := bytes.Clone(packed)
	broken[20] ^= 0xff
	claims := bytes.Clone(packed)
	claims[5]++
	for name, c := range map[string]struct {
		id       ecma.PDBID
		embedded []byte
		ok       bool
	}{
		"whole":         {id, packed, true},
		"broken":        {id, broken, false},
		"another size":  {id, claims, false},
		"another build": {otherID, packed, false},
		"none":          {id, nil, false},
	} {
		for _, mapped := range []bool{false, true} {
			file := withDebug(buildPE(0x11223344), c.id, "/src/A.pdb", c.embedded)
			const base = 0x7f0000000000
			var b buildCore
			b.thread(1, 0, 0)
			if mapped {
				b.loads = append(b.loads, buildLoad{addr: base, data: file[:0x200]}, buildLoad{addr: base + 0x10000, data: append(make([]byte, 0x200), file[0x200:0x1000]...)})
			} else {
				b.loads = append(b.loads, buildLoad{addr: base, data: file})
			}
			f := b.open(t, nil).PDB(base)
			if f == nil {
				t.Fatalf("%s, mapped %v: no PDB is named", name, mapped)
			}
			if got := f.Bytes(); bytes.Equal(got, pdb) != c.ok || !c.ok && got != nil {
				t.Errorf("%s, mapped %v: %d bytes", name, mapped, len(got))
			}
		}
	}
	const base = 0x7f0000000000
	var b buildCore
	b.thread(1, 0, 0)
	b.loads = append(b.loads, buildLoad{addr: base, data: withDebug(buildPE(0x11223344), id, "/src/A.pdb", packed)})
	p := b.open(t, nil)
	if f := p.PDB(0x1000); f != nil {
		t.Errorf("a PDB of no image: %+v", f)
	}
	p.embedded.Store(maxEmbedded)
	if got := p.PDB(base).Bytes(); got != nil {
		t.Errorf("one more is unpacked, of %d bytes", len(got))
	}
}
