package loader

import (
	"hash/crc32"
	"iter"
	"path/filepath"

	"github.com/seamwalk/seam/internal/objfile"
)

// A debugFile is an ELF file of debugging information: it describes an image
// and is not mapped in the process. Its methods work on nil, which has nothing.
type debugFile struct {
	held *held // nil: data is in memory
	data []byte
	elf  *objfile.ELF
}

// parseDebugFile returns the ELF file that data is, nil if it is none.
func parseDebugFile(data []byte) *debugFile {
	f, err := objfile.ParseELF(data)
	if err != nil {
		return nil
	}
	return &debugFile{data: data, elf: f}
}

// Section returns the bytes of a section, unpacked; nil if there is none.
func (d *debugFile) Section(name string) []byte {
	if d == nil {
		return nil
	}
	return d.elf.Section(d.held.whole(d.data), name)
}

// A debugLink tells which file has an image's debugging information: that of
// the image's build-id, or, for an image that has none, the one whose checksum
// .gnu_debuglink gives. Debugging information of another build would give wrong
// answers and no error.
type debugLink struct {
	name string // of the file, without folders
	id   string // the image's build-id in hex, or ""
	crc  uint32 // of the file's bytes, if has
	has  bool   // there is a .gnu_debuglink
}

// link returns what tells the image's debug file from others.
func (s *source) link() debugLink {
	l := debugLink{id: s.id.BuildID}
	if s.open() != nil {
		l.id = s.elf.BuildID(s.bytes())
		if name, crc, ok := s.elf.DebugLink(s.bytes()); ok && len(names(ImageID{Name: name}, "")) > 0 {
			l.name, l.crc, l.has = name, crc, true
		}
	}
	if l.name == "" {
		l.name = s.id.Name + ".debug"
	}
	return l
}

// fits reports whether d has the image's debugging information.
func (l *debugLink) fits(d *debugFile) bool {
	switch {
	case d == nil:
		return false
	case l.id != "":
		return d.elf.DebugBuildID(d.held.whole(d.data)) == l.id
	}
	return l.has && crc32.ChecksumIEEE(d.data) == l.crc
}

// debug looks for a separate file of debugging information, once. It serves
// symbols and unwind tables alike.
func (s *source) debug() *debugFile {
	s.debugOnce.Do(func() {
		if s.find == nil {
			return
		}
		l := s.link()
		if l.id == "" && !l.has {
			return
		}
		seen := map[string]bool{s.file: true}
		for path := range s.debugFiles(&l) {
			if seen[path] {
				continue
			}
			seen[path] = true
			c, ok := s.p.held.candidate(path)
			if !ok {
				continue
			}
			if d := parseDebugFile(c.data); l.fits(d) {
				d.held = s.p.held
				s.debugInfo = d
				return
			}
			s.p.held.drop(c.data)
		}
	})
	return s.debugInfo
}

// debugFiles yields the files that may be it: those that the finder knows, and
// those beside the image's file.
func (s *source) debugFiles(l *debugLink) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path := range eachDebug(s.find, ImageID{Name: l.name, BuildID: l.id}, s.path) {
			if !yield(path) {
				return
			}
		}
		if s.file != "" {
			for _, path := range besides(s.file, l.name) {
				if !yield(path) {
					return
				}
			}
		}
	}
}

// A debugFinder is a Finder that knows where debug files lie by where the image
// lay. Others are asked as for an image without a path.
type debugFinder interface {
	eachDebug(id ImageID, image string) iter.Seq[string]
}

// eachDebug yields the candidates that f has for the debug file of the name and
// build-id that id tells, of the image that the dump has at a path.
func eachDebug(f Finder, id ImageID, image string) iter.Seq[string] {
	if d, ok := f.(debugFinder); ok {
		return d.eachDebug(id, image)
	}
	return each(f, id, "")
}

func (f finders) eachDebug(id ImageID, image string) iter.Seq[string] {
	return f.all(func(g Finder) iter.Seq[string] { return eachDebug(g, id, image) })
}

// debugFolder is where distributions put separate debug files.
const debugFolder = "/usr/lib/debug"

// eachDebug follows the rules of gdb (manual, "Debugging Information in
// Separate Files"): by build-id in the folder of debug files, then by name
// beside the image, in .debug beside it, and at its path in that folder.
func (f pathFinder) eachDebug(id ImageID, image string) iter.Seq[string] {
	return func(yield func(string) bool) {
		at := f.Find(id, "")
		if filepath.IsAbs(image) {
			at = append(at, besides(image, id.Name)...)
			at = append(at, filepath.Join(debugFolder, filepath.Dir(image), id.Name))
		}
		for _, p := range at {
			if len(existing(p)) > 0 && !yield(p) {
				return
			}
		}
	}
}

// besides returns where a debug file lies beside an image.
func besides(image, name string) []string {
	dir := filepath.Dir(image)
	return []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
}
