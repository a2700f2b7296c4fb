package loader

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
)

// images finds the process's images. A trimmed core lists them in notes of its
// own, the kernel and gdb list mapped files in NT_FILE; qemu-user writes neither,
// and what the dynamic linker has loaded is read from its list in memory.
func (c *core) images() {
	c.p.RuntimeHint = c.runtimeHint()
	g := &coreImages{newImageList(c.p, &c.opt), c.notes.auxv}
	switch {
	case c.kept != nil:
		g.fromKept(c.kept)
	case len(c.notes.files) > 0:
		g.fromFileNotes(c.notes.files)
		g.vdso()
	default:
		g.fromLinkMap()
		g.vdso()
		g.fromSegments(c.loads)
	}
	g.entry = arch.Addr(c.notes.auxv[atPhdr])
	g.finish()
}

// A coreImages finds the images of an ELF core and puts them into the list that
// every format of dumps fills.
type coreImages struct {
	imageList
	auxv map[uint64]uint64 // the auxiliary vector, by type of entry; nil if the core has none
}

// fromFileNotes makes images of the mappings that NT_FILE lists, file by file.
func (g *coreImages) fromFileNotes(files []fileNote) {
	slices.SortStableFunc(files, func(a, b fileNote) int { return cmp.Compare(a.Lo, b.Lo) })
	exec := g.program(files)
	byPath := map[string][]fileNote{}
	var paths []string
	names := map[uint64]string{} // of assemblies in a bundle, by file offset of the mapping
	var last arch.Addr
	for _, f := range files {
		if f.Lo < last {
			continue // overlaps what came first
		}
		last = f.Hi
		if strings.HasPrefix(f.path, "/memfd:doublemapper") {
			continue // JIT code and loader heaps (W^X), by the thousand
		}
		if exec != "" && f.off > 0 && !strings.Contains(f.path, "/") {
			// createdump writes an assembly's name in place of the path where
			// it knows that a module begins: in a single-file program these
			// are mappings of the executable.
			names[f.off] = f.path
			f.path = exec
		}
		if byPath[f.path] == nil {
			paths = append(paths, f.path)
		}
		byPath[f.path] = append(byPath[f.path], f)
	}
	for _, path := range paths {
		b := grouper{g: g, path: path, exec: path == exec, names: names, maps: byPath[path]}
		b.group()
	}
}

// program returns the path of the program itself: of the last mapping that holds
// its program headers. It is "" if no mapping does.
func (g *coreImages) program(files []fileNote) (path string) {
	for _, f := range files {
		if f.Has(arch.Addr(g.auxv[atPhdr])) {
			path = f.path
		}
	}
	return path
}

// vdso adds the image that the kernel maps into every process. No file has it.
func (g *coreImages) vdso() {
	at := arch.Addr(g.auxv[atSysInfo])
	if at == 0 {
		return
	}
	m := g.elfImage(at)
	if m == nil {
		// Without its first page its size is not known, and the mapping that holds
		// it, as the core lists it, is the best answer.
		mm, ok := g.mem.mappedAt(at)
		if !ok {
			return
		}
		m = &Image{Format: "elf", span: mm.Span}
	}
	m.ID.Name = "[vdso]"
	g.add(m)
}

// runtimeHint reads the page that createdump adds to its dumps at a fixed
// address: a signature, sizes, and at 32 the base of the runtime's image or 0
// (SpecialDiagInfoHeader; src/coreclr/debug/createdump/specialdiaginfo.h).
func (c *core) runtimeHint() arch.Addr {
	const at = 0x7ffffff10000
	if b := c.p.Memory.dumped(at); len(b) >= 40 && strings.HasPrefix(string(b[:16]), "DIAGINFOHEADER") {
		return arch.Addr(le64(b[32:]))
	}
	if c.kept != nil {
		return c.kept.hint
	}
	return 0
}
