package loader

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/internal/objfile"
)

// FileFinder finds one file: for the image of its identity (build-id, or
// timestamp and size of PE; the GUID of a portable PDB), whatever the file's name,
// and for images of its name. A file of the right name and another build is then
// refused with a warning that names both builds, and is not just missing. It is an
// error if the file is neither ELF nor PE nor a portable PDB.
func FileFinder(path string) (Finder, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], 0) // a file of fewer bytes is none of them
	if s := string(magic[:n]); s != "\x7fELF" && s != "BSJB" && !strings.HasPrefix(s, "MZ") {
		return nil, fmt.Errorf("%s is neither an ELF nor a PE file nor a portable PDB", path)
	}
	return &fileFinder{path: path, id: sync.OnceValue(func() ImageID { return identify(path) })}, nil
}

type fileFinder struct {
	path string
	id   func() ImageID
}

// identify reads the identity that a file itself holds.
func identify(path string) (id ImageID) {
	id.Name = baseName(path)
	var held held
	c, ok := held.candidate(path)
	if !ok {
		return id
	}
	defer held.drop(c.data)
	held.use(func() {
		if h, err := objfile.ParseELFHeader(c.data); err == nil {
			progs, _ := objfile.ParseProgs(c.data, h.Phoff, h.Phnum)
			id.BuildID = objfile.FileBuildID(c.data, progs)
		} else if h, err := objfile.ParsePE(c.data); err == nil {
			id.Timestamp, id.Size = h.Timestamp, h.ImageSize
		} else if own, err := ecma.ReadPDBID(objfile.Bytes(c.data), 0, uint32(min(len(c.data), 1<<32-1))); err == nil {
			cv := objfile.CodeView{GUID: own.GUID, Portable: true}
			id.PDB = cv.String()
		}
	})
	return id
}

func (f *fileFinder) Find(id ImageID, path string) []string {
	own := f.id()
	fits := own.BuildID != "" && own.BuildID == id.BuildID ||
		own.Size != 0 && own.Size == id.Size && own.Timestamp == id.Timestamp ||
		own.PDB != "" && own.PDB == id.PDB
	for _, n := range names(id, path) {
		fits = fits || strings.EqualFold(n, own.Name)
	}
	if !fits {
		return nil
	}
	return existing(f.path)
}
