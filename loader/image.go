package loader

import (
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// An ImageID is what tells two builds of one file apart. A field that the
// dump does not give is zero.
type ImageID struct {
	Name      string // file name without folders
	BuildID   string // ELF: the NT_GNU_BUILD_ID in hex
	Timestamp uint32 // PE: IMAGE_FILE_HEADER.TimeDateStamp
	Size      uint32 // PE: IMAGE_OPTIONAL_HEADER.SizeOfImage
	MVID      string // PE with metadata: module version id, a GUID in upper-case hex
	PDB       string // of a portable PDB, which is no image but is found as they are: a GUID in upper-case hex, and FFFFFFFF
}

// An Image is an ELF or PE file mapped into the process.
type Image struct {
	ID     ImageID
	Path   string // as the dump has it; "" when it has none. Of an assembly in a single-file bundle: the bundle's
	Format string // "elf" or "pe"
	// Flat says that a PE image is mapped as its file is, not section by
	// section: CoreCLR maps each assembly so for its metadata, and a second
	// time section by section when it has ReadyToRun code.
	Flat bool

	span arch.Span
	bias uint64

	mem   *Memory
	arch  *arch.Arch
	maps  []fileMap      // what NT_FILE says of it; empty for images of the link map
	progs []objfile.Prog // ELF: from the dump's header page; nil when that is not there
	pe    *objfile.PE    // PE: from the dump's header page
	dynAt arch.Addr      // ELF: where the link map says PT_DYNAMIC lies, or 0
	shift uint64         // where in its file the image begins: not 0 in a single-file bundle
	src   *source        // its file; nil for the vDSO, which has none
	laid  bool           // PE: section by section in memory of the runtime's own, so that maps says nothing of its file
	copy  bool           // ELF: a second mapping of a part of a program, without headers or tables

	servedOnce bin.Once
	ranges     []fileMap // what is taken from the file where the dump has nothing
	dynOnce    bin.Once
	dyn        objfile.DynSymbols
	relOnce    bin.Once
	rels       *objfile.Relocations
	kept       *keptImage // of a trimmed core, else nil
	asked      asked
}

// Span returns where the image lies, from its first mapped byte to its last.
func (m *Image) Span() arch.Span { return m.span }

// Bias returns what was added to the image's link addresses to get addresses
// in the process; for PE it is the base, link addresses being RVAs (of a Flat
// one they are not: ask Directory).
func (m *Image) Bias() uint64 { return m.bias }

// Bytes says where the bytes of the image come from: "dump" when the dump
// holds them, "file" when (some of) them came from a file of the same
// identity, "none" when there are none. It does not look for a file that was
// not needed so far; [Image.File] does.
func (m *Image) Bytes() string {
	if m.src != nil && m.src.opened.Load() && m.src.mapped != nil {
		return "file"
	}
	if i := m.mem.segAfter(m.span.Lo); i < len(m.mem.segs) && m.mem.segs[i].lo < m.span.Hi {
		return "dump"
	}
	return "none"
}

// File looks for the image's file and returns its path. When there is none it
// returns "" and why: [ImageNotFound] or [ImageDiffers], the latter with a
// sentence that names the file and both identities.
func (m *Image) File() (path string, why Absence, text string) {
	if m.src == nil {
		return "", ImageNotFound, ""
	}
	m.src.open()
	return m.src.file, m.src.state, m.src.refused
}

// Verified reports whether the file that stands in for the image is known to
// be the same build (by build-id, or by timestamp and size). It is false for a
// file that merely agrees with all that the dump holds, and without a file.
func (m *Image) Verified() bool {
	if m.src == nil {
		return false
	}
	m.src.open()
	return m.src.verified
}

// elfProgs returns the program headers: the dump's, else the file's.
func (m *Image) elfProgs() []objfile.Prog {
	if m.progs != nil || m.Format != "elf" || m.src == nil || m.src.open() == nil {
		return m.progs
	}
	return m.src.progs()
}

// peHead returns the PE headers: the dump's, else the file's.
func (m *Image) peHead() *objfile.PE {
	if m.pe != nil || m.Format != "pe" || m.src == nil || m.src.open() == nil {
		return m.pe
	}
	return m.src.peAt(m.shift)
}

// baseName returns what follows the last folder of a path of either OS.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
