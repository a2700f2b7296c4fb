package objfile

import (
	"debug/elf"
	"encoding/hex"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A Note is one entry of a PT_NOTE segment or an SHT_NOTE section (gABI,
// chapter 5, "Note Section").
type Note struct {
	Name string
	Type uint32
	Desc []byte
	Off  int64 // of the entry in the file, in bytes
}

// EachNote calls f for every whole note in b, which lies at off in its file,
// until f returns false. It returns where a broken or cut note begins, or -1.
// Names and descs are padded to 4 bytes, also in cores of 64 bits, for which the
// gABI asks for 8.
func EachNote(b []byte, off int64, f func(Note) bool) (broken int64) {
	r := bin.New("notes", b)
	for r.Len() >= 12 {
		at := off + int64(len(b)-r.Len())
		namesz, descsz, typ := r.U32(), r.U32(), r.U32()
		if uint64(namesz)+uint64(descsz) > uint64(r.Len()) {
			return at
		}
		name := r.Bytes(int(namesz))
		pad(&r, namesz)
		desc := r.Bytes(int(descsz))
		pad(&r, descsz)
		if r.Err() != nil {
			return at
		}
		for len(name) > 0 && name[len(name)-1] == 0 {
			name = name[:len(name)-1]
		}
		if !f(Note{string(name), typ, desc, at}) {
			return -1
		}
	}
	return -1
}

// pad skips to a multiple of 4; the last note of a file may lack its padding.
func pad(r *bin.Reader, n uint32) {
	r.Bytes(min(int(-n&3), r.Len()))
}

// Bounds of what is taken for a build-id. Linkers make 8 to 32 bytes, in a
// segment of notes that has some hundred.
const (
	ntGNUBuildID  = 3
	maxBuildID    = 64
	maxBuildNotes = 1 << 16
)

// FileBuildID returns the NT_GNU_BUILD_ID of the ELF file that data is, in hex,
// or "". progs are its program headers.
func FileBuildID(data []byte, progs []Prog) string {
	return buildID(progs, func(p *Prog) []byte { return bin.Slice(data, p.Off, p.Filesz) })
}

// MappedBuildID is FileBuildID of an ELF file that is mapped in r, with bias
// added to its link addresses.
func MappedBuildID(r Reader, bias uint64, progs []Prog) string {
	return buildID(progs, func(p *Prog) []byte { return r.View(arch.Addr(bias+p.Vaddr), int(p.Filesz)) })
}

// buildID looks in all segments of notes; read returns the bytes of one.
func buildID(progs []Prog, read func(p *Prog) []byte) (id string) {
	for i := range progs {
		p := &progs[i]
		if p.Type != elf.PT_NOTE || p.Filesz > maxBuildNotes {
			continue
		}
		EachNote(read(p), 0, func(n Note) bool {
			if n.Name == "GNU" && n.Type == ntGNUBuildID && len(n.Desc) > 0 && len(n.Desc) <= maxBuildID {
				id = hex.EncodeToString(n.Desc)
			}
			return id == ""
		})
		if id != "" {
			return id
		}
	}
	return ""
}
