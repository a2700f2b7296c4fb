package symbolize

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/seamwalk/seam/loader"
)

// openDebugFile takes the symbols of a separate debug file: what a
// distribution's -dbg package holds, or the .dbg file beside a library. Its
// build id must be the image's: a debug file of another build would give wrong
// names and no error. Where the loader has found the symbol table, in the image
// or in a debug file among the images, there is none with more.
func openDebugFile(s *Symbolizer, img *loader.Image) *table {
	if s.opt.Find == nil || len(img.ID.BuildID) < 4 || img.Section(".symtab") != nil {
		return nil
	}
	id := img.ID
	if link := img.Section(".gnu_debuglink"); link != nil {
		// A file name, then a checksum, which the build id makes idle.
		if n := bytes.IndexByte(link, 0); n > 0 && !strings.ContainsAny(string(link[:n]), `/\`) {
			id.Name = string(link[:n])
		}
	}
	for _, path := range s.opt.Find.Find(id, filepath.Join(filepath.Dir(img.Path), id.Name)) {
		if t := debugSymbols(s.proc.DebugFile(path, img.ID.BuildID), img); t != nil {
			return t
		}
	}
	return nil
}

// debugSymbols takes the symbol table of a file of debugging information.
func debugSymbols(f *loader.DebugFile, img *loader.Image) *table {
	return parseSymbols(f.Section(".symtab"), f.Section(".strtab"), true, linkEnd(img))
}

// DebugFolders finds separate debug files where distributions and gdb put them
// (gdb manual, section 18.3): by build id under each folder, by the image's
// path under it, or beside the image.
type DebugFolders []string

// Find returns the candidates for id, of an image or debug file at path.
func (d DebugFolders) Find(id loader.ImageID, path string) (paths []string) {
	b := id.BuildID
	for _, dir := range d {
		if len(b) > 2 {
			paths = append(paths, filepath.Join(dir, ".build-id", b[:2], b[2:]+".debug"))
		}
		if strings.HasPrefix(path, "/") {
			paths = append(paths, filepath.Join(dir, path))
		}
	}
	if path != "" {
		paths = append(paths, path, filepath.Join(filepath.Dir(path), ".debug", id.Name))
	}
	return paths
}
