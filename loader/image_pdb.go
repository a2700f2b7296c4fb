package loader

import (
	"bytes"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/internal/objfile"
)

// A PDB is the portable PDB of a .NET assembly, which has the lines of its
// methods. It is looked for, checked and mapped when it is first needed.
type PDB struct {
	Name string // of the file, without folders
	ID   string // as symbol servers have it: a GUID in upper-case hex, and FFFFFFFF

	p    *Process
	base arch.Addr
	cv   objfile.CodeView
	in   arch.Span // an embedded one, packed; Hi is 0: none

	once     bin.Once
	mapped   []byte // the file; nil if unpacked is taken
	unpacked []byte // the embedded one
	file     string // path of the file that was taken
	state    Absence
	refused  string // of which files were refused, and why
}

// PDB returns the portable PDB of the PE image whose first byte lies at base, an
// assembly that was mapped or one that the process had loaded from bytes. It is
// nil if the image names none, or the dump, and the image's file, lack what
// would name it.
func (p *Process) PDB(base arch.Addr) *PDB {
	if f, ok := p.pdbs.Load(base); ok {
		return f.(*PDB)
	}
	f, _ := p.pdbs.LoadOrStore(base, p.pdbOf(base))
	return f.(*PDB)
}

// pdbOf is PDB without a memory.
func (p *Process) pdbOf(base arch.Addr) *PDB {
	h, _, err := objfile.ReadPE(p.Memory, base)
	if h == nil || err != nil {
		return nil
	}
	// An image in memory only is as its file is, or as it would be mapped: what
	// its directory leads to says which.
	places := []func(uint32) (arch.Addr, bool){h.Mapped(base), h.Flat(base)}
	if m := p.ImageAt(base); m != nil && m.Format == "pe" && m.Flat {
		places = places[1:]
	}
	for _, at := range places {
		d := h.Debug(p.Memory, at)
		if !d.Named || len(names(ImageID{Name: baseName(d.CodeView.Path)}, "")) == 0 {
			continue
		}
		return &PDB{Name: baseName(d.CodeView.Path), ID: d.CodeView.String(), p: p, base: base, cv: d.CodeView, in: d.Embedded}
	}
	return nil
}

// File looks for the PDB and returns the path of its file, "" for one that the
// image has embedded. Where there is none why is not [Present]: it is
// [ImageNotFound] or [ImageDiffers], the latter with a sentence that names the
// file and both identities.
func (f *PDB) File() (path string, why Absence, text string) {
	f.open()
	return f.file, f.state, f.refused
}

// Bytes returns what can be read of the PDB now, nil if there is none. It is to be
// asked for each read: a mapped file can lose bytes (see [Process.Guard]).
func (f *PDB) Bytes() []byte {
	f.open()
	if f.unpacked != nil {
		return f.unpacked
	}
	return f.p.held.whole(f.mapped)
}

// maxEmbedded bounds the embedded PDBs of a process together, in bytes, unpacked:
// once there are so many, no other one is taken.
const maxEmbedded = 1 << 29

// open takes the embedded PDB if the dump has its bytes, else the first file that
// is of the image's build.
func (f *PDB) open() {
	f.once.Do(func() {
		f.state = Present
		if b := f.p.Memory.View(f.in.Lo, int(f.in.Hi-f.in.Lo)); f.in.Hi != 0 && b != nil && f.p.embedded.Load() < maxEmbedded {
			if b, err := objfile.UnpackPDB(b); err == nil && f.differs(b) == "" {
				f.unpacked = b
				f.p.embedded.Add(int64(len(b)))
				return
			}
		}
		for path := range f.candidates() {
			c, ok := f.p.held.candidate(path)
			if !ok {
				continue
			}
			why := f.differs(c.data)
			if why == "" {
				f.mapped, f.file, f.refused = c.data, path, ""
				return
			}
			f.refused = fmt.Sprintf("%s is not the %s of the dump: %s", path, f.Name, why)
			f.p.held.drop(c.data)
		}
		if b, path := f.p.bundledFile(f.Name); b != nil && f.differs(b) == "" {
			f.mapped, f.file, f.refused = b, path, ""
			return
		}
		f.state = ImageNotFound
		if f.refused != "" {
			f.state = ImageDiffers
			f.p.warnLate("pdb_differs", "%s", f.refused)
		}
	})
}

// nativePDB is what PDB files begin with that are of native compilers, and of older .NET ones.
var nativePDB = []byte("Microsoft C/C++ MSF 7.00\r\n")

// differs says why data is not the image's PDB, or "".
func (f *PDB) differs(data []byte) string {
	if bytes.HasPrefix(data, nativePDB) {
		return "it is no portable PDB, but of the form that native compilers write"
	}
	id, err := ecma.ReadPDBID(objfile.Bytes(data), 0, uint32(min(len(data), 1<<32-1)))
	if err != nil {
		return "it is no portable PDB"
	}
	want := ecma.PDBID{GUID: f.cv.GUID, Stamp: f.cv.Stamp}
	if !f.cv.Portable {
		want.Stamp = id.Stamp // made with another PDB, which one with this GUID was converted from
	}
	if id != want {
		return fmt.Sprintf("its id is %v, not %v", id, want)
	}
	return ""
}

// candidates yields the files that may be it: beside the image, where the dump has
// it, in the places of the finder, where the compiler had it, and beside the
// image's file.
func (f *PDB) candidates() iter.Seq[string] {
	return func(yield func(string) bool) {
		m := f.p.ImageAt(f.base)
		find, beside := f.p.find, ""
		if m != nil && m.src != nil {
			beside = filepath.Join(filepath.Dir(m.src.path), f.Name)
		}
		if find == nil {
			return
		}
		id, seen := ImageID{Name: f.Name, PDB: f.ID}, map[string]bool{}
		// take yields files that were not yielded yet, and reports whether the
		// search goes on.
		take := func(files iter.Seq[string]) bool {
			for path := range files {
				if known := seen[path]; !known {
					if seen[path] = true; !yield(path) {
						return false
					}
				}
			}
			return true
		}
		if !take(each(find, id, beside)) || filepath.IsAbs(f.cv.Path) && !take(each(find, id, f.cv.Path)) || beside == "" {
			return
		}
		if m.src.open(); m.src.file != "" {
			take(slices.Values(existing(filepath.Join(filepath.Dir(m.src.file), f.Name))))
		}
	}
}
