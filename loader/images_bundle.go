package loader

import (
	"debug/elf"
	"slices"
	"sort"
	"strings"

	"github.com/seamwalk/seam/internal/objfile"
)

// unnamed is the name of an assembly in a bundle until nameBundled knows better.
const unnamed = "?"

// nameBundled gives the assemblies of a single-file program their names: the
// ones that createdump wrote into NT_FILE, for both mappings of an assembly,
// and the manifest's, for which the program's file is looked for at once.
func (g *imageList) nameBundled() {
	b := g.bundled()
	if b.host == nil {
		return
	}
	var files []bundleFile
	if b.missing && b.host.open() != nil {
		files = bundleFiles(b.host.bytes(), b.host.progs())
	}
	for _, m := range g.p.Images {
		if b.has(m) {
			b.nameByManifest(m, files)
		}
	}
	kept := g.p.Images[:0]
	for _, m := range g.p.Images {
		if b.has(m) {
			m.ID.Name = b.names[m.shift]
			switch {
			case m.ID.Name != "":
			case m.pe == nil && g.copied(m, b.host):
			case m.pe == nil && files != nil:
				continue // a lone section of an assembly, mapped for itself
			}
		}
		kept = append(kept, m)
	}
	g.p.Images = kept
}

// A bundle is a single-file program while its assemblies get their names.
type bundle struct {
	host    *source           // the program's file; nil if there is no such program
	names   map[uint64]string // of assemblies, by where in the file they begin
	missing bool              // the manifest has to be read for names, or to know where an assembly begins
}

// has reports whether m is an assembly of the bundle.
func (b *bundle) has(m *Image) bool { return m.src == b.host && m.Format == "pe" }

// bundled returns the program of which PE images are mapped, and the names of
// these that are known. What lies in a file that an ELF image was mapped from is
// in its bundle.
func (g *imageList) bundled() bundle {
	b := bundle{names: map[uint64]string{}}
	programs := map[*source]bool{}
	for _, m := range g.p.Images {
		if _, asked := programs[m.src]; m.src != nil && !asked {
			programs[m.src] = slices.ContainsFunc(m.src.images, func(o *Image) bool { return o.Format == "elf" })
		}
	}
	for _, m := range g.p.Images {
		if m.src == nil || m.Format != "pe" || !programs[m.src] {
			continue
		}
		b.host = m.src
		if m.ID.Name != unnamed {
			b.names[m.shift] = m.ID.Name
		}
		b.missing = b.missing || m.pe == nil || m.ID.Name == unnamed
	}
	return b
}

// nameByManifest looks for the assembly m in the manifest, which is in the order
// of the file. Of an image without headers only the page is known where it begins.
func (b *bundle) nameByManifest(m *Image, files []bundleFile) {
	page := m.shift &^ (pageSize - 1)
	i := sort.Search(len(files), func(i int) bool { return files[i].off&^(pageSize-1) >= page })
	for ; i < len(files) && m.pe != nil && files[i].off < m.shift; i++ {
	}
	if i >= len(files) || files[i].off&^(pageSize-1) != page || files[i].packed != 0 {
		return
	}
	if m.pe == nil {
		m.shift = files[i].off
		m.bias = uint64(m.span.Lo) + m.shift%pageSize
		if h := b.host.peAt(m.shift); h != nil {
			m.ID.Timestamp, m.ID.Size = h.Timestamp, h.ImageSize
		}
	}
	b.names[m.shift] = baseName(files[i].name)
}

// copied makes of m, which was taken for an assembly in the program's file, a
// second mapping of a part of the program, if that is what lies at its place of
// the file. V8 maps its builtins, a part of node's text, close to the code that
// it compiles. Symbols of such a copy are found by its bias; tables, which lie
// in the first mapping, are not said to lie here.
func (g *imageList) copied(m *Image, program *source) bool {
	if len(m.maps) == 0 {
		return false // a module of a list, which does not say from where in the file it is mapped
	}
	progs := program.progs()
	var id ImageID
	for _, o := range program.images {
		if o.Format == "elf" && o.progs != nil {
			progs, id = o.progs, o.ID
		}
	}
	mp, ok := g.mem.mappedAt(m.span.Lo)
	for _, p := range progs {
		if p.Type != elf.PT_LOAD || m.shift < p.Off&^(pageSize-1) || m.shift >= p.Off+p.Filesz ||
			ok && mp.flags&^uint32(p.Flags)&uint32(elf.PF_X) != 0 {
			continue
		}
		m.Format, m.Flat, m.shift, m.progs = "elf", false, 0, []objfile.Prog{}
		m.span.Hi = min(m.span.Hi, m.span.Lo+pageSpan(0, p.Off+p.Filesz-m.maps[0].off).Hi)
		m.bias = uint64(m.span.Lo) - (p.Vaddr&^(pageSize-1) + m.maps[0].off - p.Off&^(pageSize-1))
		m.ID = ImageID{Name: program.id.Name, BuildID: id.BuildID}
		m.copy = true
		return true
	}
	return false
}

// fromBundle names an assembly by the manifest of the program's bundle, if
// there is one: the entry whose header has the same timestamp and size.
func (g *coreImages) fromBundle(m, host *Image) {
	m.ID.Name = ""
	if host == nil || host.Path == "" || host.Format != "elf" {
		return
	}
	if host.src == nil {
		g.source(host)
	}
	s := host.src
	if s.open() == nil {
		return
	}
	if g.bundle == nil {
		g.bundle = bundleFiles(s.bytes(), s.progs())
	}
	for _, f := range g.bundle {
		if h := s.peAt(f.off); f.packed == 0 && h != nil && h.Timestamp == m.ID.Timestamp && h.ImageSize == m.ID.Size {
			m.ID.Name, m.Path, m.shift = baseName(f.name), host.Path, f.off
			if m.Flat {
				m.maps = []fileMap{{m.span, f.off &^ (pageSize - 1), m}}
			}
			m.src = s
			return
		}
	}
}

// layUnpacked finds out which of the assemblies whose names createdump has written in
// place of a path, and of whose headers the dump has nothing, are laid out section by
// section: those that have as much memory as the headers claim which are in the
// bundle. For that the program's file is looked for at once, and the begin of each of
// them is unpacked.
func (g *imageList) layUnpacked() {
	host := g.p.program.image
	for _, m := range g.p.Images {
		if m.Format != "pe" || m.pe != nil || len(m.maps) != 1 || m.maps[0].off != 0 || m.Path == "" || strings.Contains(m.Path, "/") {
			continue
		}
		if host == nil || host.src == nil || host.src.open() == nil {
			return
		}
		f := g.p.program.bundled(host.src)[m.ID.Name]
		if f == nil || f.packed == 0 {
			continue
		}
		head, err := f.head(host.src.bytes())
		if err == nil && head.For(g.p.Arch) && m.maps[0].laidOut(head) {
			m.laid, m.Flat = true, false
			m.ID.Timestamp, m.ID.Size = head.Timestamp, head.ImageSize
			m.src.id.Timestamp, m.src.id.Size = head.Timestamp, head.ImageSize
		}
	}
}
