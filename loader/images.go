package loader

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
)

// An imageList collects the images of a process while its dump is opened. It does
// not know the format of the dump: an ELF core fills it from NT_FILE or from the
// dynamic linker's list, and a format that lists modules calls [imageList.module]
// for each. Who fills it calls add for every image, in any order, source where the
// file is needed at once, and finish at the end.
type imageList struct {
	p       *Process
	mem     *Memory // the process's
	find    Finder
	limit   int // how many images the process may have
	list    []*Image
	sources map[sourceKey]*source
	byPath  map[string]*source
	bundle  []bundleFile // of the program, if its file was needed
	entry   arch.Addr    // in the image of the program that the process was started from; 0: not known
}

type sourceKey struct{ path, id string }

// newImageList returns an empty list for the process p, whose CPU and memory are
// known.
func newImageList(p *Process, opt *Options) imageList {
	return imageList{p: p, mem: p.Memory, find: opt.Find, limit: opt.Limits.Images,
		sources: map[sourceKey]*source{}, byPath: map[string]*source{}}
}

// add takes the image m, and names it after its path if it has no name.
func (g *imageList) add(m *Image) {
	g.adopt(m)
	for i := range m.maps {
		m.maps[i].img = m
	}
	g.list = append(g.list, m)
}

// adopt makes m an image of the process, which may not be added to the list in
// the end.
func (g *imageList) adopt(m *Image) {
	m.mem, m.arch = g.mem, g.p.Arch
	if m.ID.Name == "" {
		m.ID.Name = baseName(strings.TrimSuffix(m.Path, " (deleted)"))
	}
}

// source gives m the file of its path and identity, which is not looked for yet.
// Images of one path and identity share it: a library that is mapped twice is
// opened once.
func (g *imageList) source(m *Image) {
	k := sourceKey{m.Path, m.ID.BuildID}
	s := g.sources[k]
	if m.Format == "pe" {
		// By path alone: the flat and the mapped image of one file share, and
		// gcore's have no identity.
		s = g.byPath[m.Path]
	}
	if s == nil {
		s = &source{p: g.p, find: g.find, id: m.ID, path: strings.TrimSuffix(m.Path, " (deleted)")}
		g.sources[k] = s
		g.byPath[m.Path] = s
	}
	if s.id.Timestamp == 0 && s.id.Size == 0 && m.Format == "pe" {
		s.id.Timestamp, s.id.Size = m.ID.Timestamp, m.ID.Size
	}
	s.images = append(s.images, m)
	m.src = s
}

// finish gives the images to the process: sorted, without overlaps, each with its
// source, and the memory knows which ranges were mapped from files.
func (g *imageList) finish() {
	g.arrange()
	for _, format := range []string{"elf", "pe"} { // a bundle's assemblies share the source of its host
		for _, m := range g.p.Images {
			if m.src == nil && m.Path != "" && m.Format == format {
				g.source(m)
			}
		}
	}
	if g.entry != 0 {
		g.p.program.image = g.p.ImageAt(g.entry)
	}
	g.nameBundled()
	g.layUnpacked()
	g.mapFiles()
}

// arrange sorts the images by address, and cuts off what overlaps.
func (g *imageList) arrange() {
	p := g.p
	slices.SortStableFunc(g.list, func(a, b *Image) int { return cmp.Compare(a.span.Lo, b.span.Lo) })
	for _, m := range g.list {
		if len(p.Images) >= g.limit {
			p.warn("limit", -1, "only the first %d images are read", len(p.Images))
			break
		}
		if k := len(p.Images); k > 0 && m.span.Lo < p.Images[k-1].span.Hi {
			// Headers can claim more room than there is; what lies in it wins.
			p.Images[k-1].span.Hi = m.span.Lo
			if p.Images[k-1].span.Lo >= m.span.Lo {
				p.Images = p.Images[:k-1]
			}
		}
		if m.span.Lo < m.span.Hi {
			p.Images = append(p.Images, m)
		}
	}
}

// mapFiles has the memory ask the files of images for bytes that the dump lacks.
func (g *imageList) mapFiles() {
	for _, m := range g.p.Images {
		if m.src == nil {
			continue
		}
		if len(m.maps) == 0 {
			g.mem.files = append(g.mem.files, fileMap{m.span, 0, m})
		}
		for _, r := range m.maps {
			r.Lo, r.Hi = max(r.Lo, m.span.Lo), min(r.Hi, m.span.Hi)
			if r.Lo < r.Hi {
				g.mem.files = append(g.mem.files, fileMap{r.Span, r.off, m})
			}
		}
	}
	slices.SortFunc(g.mem.files, func(a, b fileMap) int { return cmp.Compare(a.Lo, b.Lo) })
}
