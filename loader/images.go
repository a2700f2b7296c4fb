package loader

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
)

// images finds the process's images, from NT_FILE where there is one, else
// from the dynamic linker's list.
func (c *core) images() {
	c.p.RuntimeHint = c.runtimeHint()
	g := &imageList{c: c, m: c.p.Memory, sources: map[sourceKey]*source{}, byPath: map[string]*source{}}
	switch {
	case c.kept != nil:
		g.fromKept(c.kept)
	case len(c.notes.files) > 0:
		g.fromFileNotes(c.notes.files)
		g.vdso()
	default:
		g.fromLinkMap()
		g.vdso()
		g.loosePE()
	}
	g.finish()
}

// An imageList collects images while a core is opened.
type imageList struct {
	c       *core
	m       *Memory
	list    []*Image
	sources map[sourceKey]*source
	byPath  map[string]*source
	bundle  []bundleFile // of the program, if its file was needed
}

type sourceKey struct{ path, id string }

// add takes the image m. Images of one path and identity share a source.
func (g *imageList) add(m *Image) {
	m.mem, m.arch = g.m, g.c.p.Arch
	if m.ID.Name == "" {
		m.ID.Name = baseName(strings.TrimSuffix(m.Path, " (deleted)"))
	}
	for i := range m.maps {
		m.maps[i].img = m
	}
	g.list = append(g.list, m)
}

// source gives m the source of its path and identity.
func (g *imageList) source(m *Image) {
	k := sourceKey{m.Path, m.ID.BuildID}
	s := g.sources[k]
	if m.Format == "pe" {
		// By path alone: the flat and the mapped image of one file share, and
		// gcore's have no identity.
		s = g.byPath[m.Path]
	}
	if s == nil {
		s = &source{p: g.c.p, find: g.c.opt.Find, id: m.ID, path: strings.TrimSuffix(m.Path, " (deleted)")}
		g.sources[k] = s
		g.byPath[m.Path] = s
	}
	if s.id.Timestamp == 0 && s.id.Size == 0 && m.Format == "pe" {
		s.id.Timestamp, s.id.Size = m.ID.Timestamp, m.ID.Size
	}
	s.images = append(s.images, m)
	m.src = s
}

// fromFileNotes groups the mappings of each file into images.
func (g *imageList) fromFileNotes(files []fileNote) {
	slices.SortStableFunc(files, func(a, b fileNote) int { return cmp.Compare(a.Lo, b.Lo) })
	exec := ""
	for _, f := range files {
		if f.Has(arch.Addr(g.c.notes.auxv[atPhdr])) {
			exec = f.path
		}
	}
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

// finish sorts the images, gives each its source, and tells the memory what is
// mapped from files.
func (g *imageList) finish() {
	p := g.c.p
	slices.SortStableFunc(g.list, func(a, b *Image) int { return cmp.Compare(a.span.Lo, b.span.Lo) })
	for _, m := range g.list {
		if len(p.Images) >= g.c.opt.Limits.Images {
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
	for _, format := range []string{"elf", "pe"} { // a bundle's assemblies share the source of its host
		for _, m := range p.Images {
			if m.src == nil && m.Path != "" && m.Format == format {
				g.source(m)
			}
		}
	}
	g.nameBundled()
	for _, m := range p.Images {
		if m.src == nil {
			continue
		}
		if len(m.maps) == 0 {
			g.m.files = append(g.m.files, fileMap{m.span, 0, m})
		}
		for _, r := range m.maps {
			r.Lo, r.Hi = max(r.Lo, m.span.Lo), min(r.Hi, m.span.Hi)
			if r.Lo < r.Hi {
				g.m.files = append(g.m.files, fileMap{r.Span, r.off, m})
			}
		}
	}
	slices.SortFunc(g.m.files, func(a, b fileMap) int { return cmp.Compare(a.Lo, b.Lo) })
}

// elfImage makes an image of the ELF file whose header page the dump has at
// base, or nil.
func (g *imageList) elfImage(base arch.Addr) *Image {
	h := g.elfHead(base)
	if h == nil {
		return nil
	}
	return g.elfImageOf(base, g.progsAt(base+arch.Addr(h.phoff), h.phnum))
}

// elfHead returns the ELF header that the dump has at base, or nil if there is
// none of a program or library of the process.
func (g *imageList) elfHead(base arch.Addr) *elfHeader {
	head := g.m.View(base, elfHeaderSize)
	if head == nil {
		return nil
	}
	h, err := parseELFHeader(head)
	if err != nil || h.machine != g.c.p.Arch.Machine || h.phnum == 0 || h.phnum > 1024 {
		return nil
	}
	return h
}

// progsAt returns the n program headers that the dump has at a, or nil.
func (g *imageList) progsAt(a arch.Addr, n int) []elfProg {
	raw := g.m.View(a, n*elfProgSize)
	if raw == nil {
		return nil
	}
	progs, _ := parseProgs(raw, &elfHeader{}, n)
	return progs
}

// elfImageOf makes an image of the ELF file at base that has these program
// headers, or nil if it cannot.
func (g *imageList) elfImageOf(base arch.Addr, progs []elfProg) *Image {
	m := &Image{Format: "elf", progs: progs}
	span, ok := progSpan(progs)
	if !ok {
		return nil
	}
	// The header lies at file offset 0, which the first PT_LOAD maps.
	m.bias = uint64(base) - uint64(span.Lo)
	for _, p := range progs {
		if p.typ == elf.PT_LOAD && p.off < pageSize {
			m.bias = uint64(base) - (p.vaddr - p.off)
			break
		}
	}
	m.span = arch.Span{Lo: span.Lo + arch.Addr(m.bias), Hi: span.Hi + arch.Addr(m.bias)}
	if m.span.Lo > m.span.Hi || !m.span.Has(base) {
		return nil
	}
	m.ID.BuildID = buildID(progs, func(at, n uint64) []byte {
		return g.m.View(arch.Addr(m.bias+at), int(n))
	}, false)
	return m
}

// progSpan returns the link addresses from the first to the last PT_LOAD.
func progSpan(progs []elfProg) (s arch.Span, ok bool) {
	for _, p := range progs {
		if p.typ != elf.PT_LOAD || p.memsz == 0 || p.memsz > 1<<40 {
			continue
		}
		q := pageSpan(p.vaddr, p.memsz)
		if !ok {
			s, ok = q, true
		}
		s.Lo, s.Hi = min(s.Lo, q.Lo), max(s.Hi, q.Hi)
	}
	return s, ok && s.Lo < s.Hi
}

// vdso adds the image that the kernel maps into every process.
func (g *imageList) vdso() {
	at := arch.Addr(g.c.notes.auxv[atSysInfo])
	if at == 0 {
		return
	}
	m := g.elfImage(at)
	if m == nil {
		// Without its page the span is not known; two pages is what it has.
		if mm, ok := g.m.mappedAt(at); ok {
			m = &Image{Format: "elf", span: mm.Span}
		} else {
			return
		}
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

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
