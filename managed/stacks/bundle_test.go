package stacks

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/objfile"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// bundleMarker is the program's mark of the bundle's header.
var bundleMarker = []byte("\x8b\x12\x02\xb9\x6a\x61\x20\x38\x72\x7b\x93\x02\x14\xd7\xa0\x32\x13\xf5\xb9\xe6\xef\xae\x33\x18\xee\x3b\x2d\xce\x24\xb3\x6a\xae")

// A packed is a single-file program whose assemblies have been compressed, as
// PublishSingleFile with EnableCompressionInSingleFile makes one.
type packed struct {
	data   []byte
	header uint64
	first  uint64            // where the first file lay
	files  map[string][]byte // by name, as they were
}

// bundledPDB is the PDB of the program, as IncludeSymbolsInSingleFile puts it into the
// bundle.
const bundledPDB = "scenarios.pdb"

// compress makes a compressed bundle of a plain one, and of a PDB. pack packs one file.
func compress(t *testing.T, plain, pdb []byte, pack func(name string, b []byte) (packed []byte, size int)) packed {
	t.Helper()
	le := binary.LittleEndian
	mark := bytes.Index(plain, bundleMarker)
	header := le.Uint64(plain[mark-8:])
	in := plain[header:]
	n := int(le.Uint32(in[8:]))
	id := 12 + 1 + int(in[12]) + 40 // behind the id, the places of two files and the flags
	head, at := in[:id], id
	type file struct {
		off, size, packed uint64
		rest              []byte // its type and name
	}
	var files []file
	first := header
	for range n {
		f := file{off: le.Uint64(in[at:]), size: le.Uint64(in[at+8:])}
		end := at + 26 + int(in[at+25])
		f.rest = in[at+24 : end]
		files, at = append(files, f), end
		first = min(first, f.off)
	}
	files = append(files, file{off: uint64(len(plain)), size: uint64(len(pdb)), rest: append([]byte{5, byte(len(bundledPDB))}, bundledPDB...)})
	plain = slices.Concat(plain, pdb)
	head = bytes.Clone(head)
	le.PutUint32(head[8:], uint32(len(files)))
	out := bytes.Clone(plain[:first])
	p := packed{first: first, files: map[string][]byte{}}
	for i := range files {
		f := &files[i]
		name := string(f.rest[2:])
		p.files[name] = plain[f.off : f.off+f.size]
		b, size := pack(name, p.files[name])
		f.off, f.size, f.packed = uint64(len(out)), uint64(size), uint64(len(b))
		out = append(out, b...)
	}
	p.header = uint64(len(out))
	out = append(out, head...)
	for _, f := range files {
		for _, v := range []uint64{f.off, f.size, f.packed} {
			out = le.AppendUint64(out, v)
		}
		out = append(out, f.rest...)
	}
	le.PutUint64(out[mark-8:], p.header)
	p.data = out
	return p
}

// deflate packs as .NET does.
func deflate(_ string, b []byte) ([]byte, int) {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestSpeed)
	w.Write(b)
	w.Close()
	return out.Bytes(), len(b)
}

// unpackedBy makes of a createdump dump of a plain bundle what it would be if the
// runtime had unpacked the assemblies that images are of into memory of its own: no
// mapping leads to the bundle, and createdump writes the name of each for all of its
// memory. Of their read-only sections it takes out what the dump has: all of it is
// in the bundle.
func unpackedBy(t *testing.T, c *coreedit.Core, images []*loader.Image, p packed) {
	t.Helper()
	le := binary.LittleEndian
	c.Notes(func(_ string, typ uint32, desc []byte) bool {
		const ntFile = 0x46494c45
		if typ != ntFile {
			return true
		}
		n := int(le.Uint64(desc))
		names := strings.Split(string(desc[16+24*n:]), "\x00")
		var b, text []byte
		count := 0
		put := func(lo, hi, off uint64, name string) {
			for _, v := range []uint64{lo, hi, off} {
				b = le.AppendUint64(b, v)
			}
			text = append(append(text, name...), 0)
			count++
		}
		for i := range n {
			e := desc[16+24*i:]
			lo, hi, off := le.Uint64(e), le.Uint64(e[8:]), le.Uint64(e[16:])
			// What is left of the program are its own segments.
			inside := off*le.Uint64(desc[8:]) >= p.first&^0xfff
			for _, img := range images {
				inside = inside || img.Span().Has(arch.Addr(lo))
			}
			if !inside {
				put(lo, hi, off, names[i])
			}
		}
		for _, img := range images {
			size := uint64(img.ID.Size)
			if img.Flat {
				size = uint64(len(p.files[img.ID.Name]))
			}
			put(img.Bias(), img.Bias()+(size+0xfff)&^0xfff, 0, img.ID.Name)
		}
		head := le.AppendUint64(le.AppendUint64(nil, uint64(count)), le.Uint64(desc[8:]))
		whole := append(append(head, b...), text...)
		if len(whole) > len(desc) {
			t.Fatal("the list of files has grown")
		}
		clear(desc)
		copy(desc, whole)
		return true
	})
	for _, img := range images {
		if img.Flat {
			c.Hole(img.Bias(), uint64(len(p.files[img.ID.Name])))
			continue
		}
		h, err := objfile.ParsePE(p.files[img.ID.Name])
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range h.Sections {
			if s.Characteristics&objfile.PEWritable == 0 {
				c.Hole(img.Bias()+uint64(s.VA), uint64(s.VSize))
			}
		}
	}
	for _, a := range c.Find(bundleMarker) {
		if err := c.SetWord(a-8, p.header); err != nil {
			t.Fatal(err)
		}
	}
}

// The assemblies of a compressed bundle are unpacked out of the program: the
// stacks are those of the plain bundle. No recording is of a compressed one, so
// the test makes it of a plain one's.
func TestCompressedBundle(t *testing.T) {
	const name = "net10-singlefile-x64"
	images := corpus.Images(t)
	plain, err := loader.Open(corpus.Path(t, name, "normal.zst"), &loader.Options{Find: loader.DirFinder(images)})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var laid, flat []*loader.Image
	host := ""
	for _, img := range plain.Images {
		switch {
		case img.Format != "pe" || img.ID.Name == "" || strings.HasSuffix(img.Path, img.ID.Name):
		case !img.Flat:
			laid = append(laid, img)
			host, _, _ = img.File()
		case img.Bias()%0x1000 == 0:
			flat = append(flat, img)
		}
	}
	want := managedFrames(t, plain, laid)
	if len(laid) < 10 || len(flat) == 0 {
		t.Fatalf("%d assemblies with ReadyToRun code, %d flat ones", len(laid), len(flat))
	}
	program, err := os.ReadFile(host)
	if err != nil {
		t.Fatal(err)
	}
	pdbs, _ := filepath.Glob(filepath.Join(images, "pdb", bundledPDB, "51EC89CF*", bundledPDB))
	if len(pdbs) != 1 {
		t.Fatalf("%d PDBs", len(pdbs))
	}
	pdb, err := os.ReadFile(pdbs[0])
	if err != nil {
		t.Fatal(err)
	}
	broken := func(name string, b []byte) ([]byte, int) {
		p, n := deflate(name, b)
		switch name {
		case "System.Collections.dll":
			p[len(p)/2] ^= 0x55 // broken
		case "System.Console.dll":
			n++ // a size that it does not have
		case "System.Linq.dll":
			n--
		case "System.Private.CoreLib.dll":
			n = 1 << 40 // a bomb
		}
		return p, n
	}
	for _, c := range []struct {
		what  string
		pack  func(string, []byte) ([]byte, int)
		warns int
		same  bool
	}{{"sound", deflate, 0, true}, {"broken", broken, 4, false}} {
		p := compress(t, program, pdb, c.pack)
		dir := t.TempDir()
		for _, lib := range []string{"libc.so.6", "ld-linux-x86-64.so.2", "librecorder.so", "libstdc++.so.6"} {
			if paths, _ := filepath.Glob(filepath.Join(images, "elf", "*", lib)); len(paths) > 0 {
				for i, path := range paths {
					os.Symlink(path, filepath.Join(dir, fmt.Sprint(i)+"-"+lib))
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "scenarios"), p.data, 0o600); err != nil {
			t.Fatal(err)
		}
		core, err := coreedit.Read(corpus.Path(t, name, "normal.zst"))
		if err != nil {
			t.Fatal(err)
		}
		unpackedBy(t, core, slices.Concat(laid, flat), p)
		path := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, core.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		proc, err := loader.Open(path, &loader.Options{Find: loader.DirFinder(dir), Track: true})
		if err != nil {
			t.Fatal(err)
		}
		defer proc.Close()
		got := managedFrames(t, proc, laid)
		if trimmed := managedFrames(t, trimmed(t, proc), laid); fmt.Sprint(trimmed) != fmt.Sprint(got) {
			t.Errorf("%s: trimmed, it has other frames", c.what)
		}
		for _, img := range plain.Images {
			if img.ID.Name != "scenarios.dll" || !img.Flat {
				continue
			}
			f := proc.PDB(arch.Addr(img.Bias()))
			if f == nil {
				t.Fatal("scenarios.dll names no PDB")
			}
			if path, why, text := f.File(); path != filepath.Join(dir, "scenarios") || !bytes.Equal(f.Bytes(), pdb) {
				t.Errorf("%s: the PDB in the bundle: %s, %v, %s", c.what, path, why, text)
			}
		}
		for _, img := range flat {
			b := p.files[img.ID.Name]
			if got := proc.Memory.View(arch.Addr(img.Bias()), len(b)); c.same && !bytes.Equal(got, b) {
				t.Errorf("%s: %s is not in memory as it is in the bundle", c.what, img.ID.Name)
			}
		}
		for _, img := range proc.Images {
			img.File() // unpacks those that no frame needed
		}
		warns := 0
		for _, w := range proc.Problems() {
			if w.Code == "bundle_broken" {
				warns++
			} else {
				t.Errorf("%s: %v", c.what, w)
			}
		}
		if warns != c.warns {
			t.Errorf("%s: %d warnings, want %d: %v", c.what, warns, c.warns, proc.Problems())
		}
		differ := 0
		for tid, frames := range want {
			if strings.Join(frames, "\n") != strings.Join(got[tid], "\n") {
				if differ++; c.same && differ < 4 {
					t.Errorf("%s: thread %d:\n%s\n\nnot\n\n%s", c.what, tid, strings.Join(got[tid], "\n"), strings.Join(frames, "\n"))
				}
			}
		}
		if c.same != (differ == 0) {
			t.Errorf("%s: %d threads of %d differ", c.what, differ, len(want))
		}
	}
}

// managedFrames returns, by thread, the managed frames in the assemblies that images
// are of, as they are shown.
func managedFrames(t *testing.T, p *loader.Process, images []*loader.Image) map[uint32][]string {
	t.Helper()
	names := map[string]bool{}
	for _, img := range images {
		names[img.ID.Name] = true
	}
	out := map[uint32][]string{}
	for th, err := range Of(managed.Open(p, nil), nil).All() {
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		for i := range th.Frames {
			if f := &th.Frames[i]; f.Kind == Managed && names[f.Module] {
				list = append(list, fmt.Sprintf("%v %s!%s", f.PC.Addr, f.Module, f.Function))
			}
		}
		out[th.TID] = list
	}
	return out
}

// trimmed opens what a trim makes of p, without any file.
func trimmed(t *testing.T, p *loader.Process) *loader.Process {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "small"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := p.WriteTrimmed(f, loader.Kept{}); err != nil {
		t.Fatal(err)
	}
	small, err := loader.Open(f.Name(), &loader.Options{Find: loader.MultiFinder()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { small.Close() })
	return small
}
