package loader

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// maxLinks bounds the dynamic linker's list; a process of a thousand
// libraries is rare.
const maxLinks = 1 << 13

// fromLinkMap finds the images the way a debugger does: the auxiliary vector
// has the program's headers, its PT_DYNAMIC has DT_DEBUG, that points to
// r_debug (glibc's link.h), which begins the list of what is loaded. qemu-user
// writes no NT_FILE, and leaves out the pages that hold most images' headers:
// those come from the files, which are looked for at once.
func (g *coreImages) fromLinkMap() {
	if g.auxv[atPhdr] == 0 {
		g.p.warn("no_images", -1, "the core has neither NT_FILE nor AT_PHDR: its images are not known")
		return
	}
	exec := g.execImage()
	g.add(exec)
	progs := exec.elfProgs()
	base := arch.Addr(g.auxv[atBase]) // of the dynamic linker; 0 in a static program
	for _, p := range progs {
		if p.Type == elf.PT_DYNAMIC {
			g.walkLinks(exec, objfile.DynamicTag(g.mem, arch.Addr(exec.bias+p.Vaddr), elf.DT_DEBUG), base, interp(exec, progs))
		}
	}
	if len(progs) == 0 {
		g.p.warn("no_images", -1, "the program headers of %s are neither in the core nor in a file at hand: which libraries it has loaded is not known", exec.Path)
	}
	if base == 0 || g.known(base) {
		return
	}
	ld := &Image{Format: "elf", Path: interp(exec, progs), bias: uint64(base)}
	if ld.Path == "" {
		ld.ID.Name = "[ld.so]"
	}
	g.loaded(ld, base)
}

// execImage makes the image of the program itself. Its headers are read where the
// auxiliary vector says that they lie, else from its file.
func (g *coreImages) execImage() *Image {
	at := g.auxv[atPhdr]
	path, _ := g.mem.text(arch.Addr(g.auxv[atExecFn]))
	exec := &Image{Format: "elf", Path: path}
	if n := g.auxv[atPhnum]; n > 0 && n < 1024 {
		if raw := g.mem.View(arch.Addr(at), int(n)*objfile.ProgSize); raw != nil {
			exec.progs, _ = objfile.ParseProgs(raw, 0, int(n))
			exec.bias = execBias(exec.progs, at)
		}
	}
	if exec.progs == nil {
		g.execFile(exec, at)
	}
	if exec.progs != nil {
		exec.ID.BuildID = objfile.MappedBuildID(g.mem, exec.bias, exec.progs)
	}
	g.place(exec, arch.Addr(at), arch.Addr(at))
	return exec
}

// execBias returns what was added to the program's link addresses, at being
// where its headers lie.
func execBias(progs []objfile.Prog, at uint64) uint64 {
	for _, p := range progs {
		if p.Type == elf.PT_PHDR {
			return at - p.Vaddr
		}
	}
	// A static program has no PT_PHDR; its headers follow the ELF header,
	// which the PT_LOAD of offset 0 maps.
	for _, p := range progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			return at - (p.Vaddr + objfile.ELFHeaderSize)
		}
	}
	return 0
}

// execFile takes the program's headers from its file, if that is the program: a
// file of its name need not be, and need not even be an ELF file.
func (g *coreImages) execFile(exec *Image, at uint64) {
	g.adopt(exec)
	g.source(exec)
	s := exec.src
	s.images = nil // where it lies is only known from the file; compared below
	if s.open() == nil {
		return
	}
	exec.bias = execBias(s.progs(), at)
	if s.elf.Entry+exec.bias != g.auxv[atEntry] || len(s.progs()) != int(g.auxv[atPhnum]) ||
		exec.checkDynamic(s.bytes(), s.progs()) != "" {
		g.refuse(s, "program", "its entry point, program headers or dynamic section differ")
	}
}

// interp returns the path of the dynamic linker that the program asks for.
func interp(exec *Image, progs []objfile.Prog) string {
	for _, p := range progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		if s, ok := exec.mem.text(arch.Addr(exec.bias + p.Vaddr)); ok {
			return s
		}
		if exec.src.open() != nil {
			return bin.CString(bin.Slice(exec.src.bytes(), p.Off, p.Filesz), 0)
		}
	}
	return ""
}

// walkLinks follows struct link_map: l_addr, l_name, l_ld, l_next, l_prev.
func (g *coreImages) walkLinks(exec *Image, debug uint64, base arch.Addr, linker string) {
	if debug == 0 {
		return // static, or so early that the linker has not run
	}
	at, ok := g.mem.Word(arch.Addr(debug + 8)) // r_debug.r_map
	seen := map[uint64]bool{}
	for ok && at != 0 && len(seen) < maxLinks {
		if seen[at] {
			g.p.warn("link_map_bad", -1, "the list of loaded libraries runs in a circle at %#x", at)
			return
		}
		seen[at] = true
		b := g.mem.View(arch.Addr(at), 32)
		if b == nil {
			g.p.warn("link_map_cut", -1, "the list of loaded libraries is not in the dump from %#x on", at)
			return
		}
		addr, name, ld := le64(b), le64(b[8:]), le64(b[16:])
		at = le64(b[24:])
		if exec.dynAt = exec.dynamicAt(); arch.Addr(ld) == exec.dynAt {
			continue // the program itself
		}
		path, readable := g.mem.text(arch.Addr(name))
		if !readable && arch.Addr(addr) == base {
			path = linker // its own name lies in its text
		}
		if sys := g.auxv[atSysInfo]; sys != 0 && addr == sys {
			continue
		}
		g.loaded(&Image{Format: "elf", Path: path, bias: addr, dynAt: arch.Addr(ld)}, arch.Addr(addr))
	}
}

// loaded adds an image of the link map, whose header, if the dump has it, lies at base.
func (g *coreImages) loaded(m *Image, base arch.Addr) {
	if h := g.elfImage(base); h != nil && h.bias == m.bias {
		h.Path, h.dynAt, h.ID.Name = m.Path, m.dynAt, m.ID.Name
		g.add(h)
		return
	}
	g.adopt(m)
	if m.Path != "" {
		g.source(m)
		m.src.open()
	}
	g.place(m, base, max(base, m.dynAt))
	g.add(m)
}

// dynamicAt returns where PT_DYNAMIC lies, or 0.
func (m *Image) dynamicAt() arch.Addr {
	for _, p := range m.elfProgs() {
		if p.Type == elf.PT_DYNAMIC {
			return arch.Addr(m.bias + p.Vaddr)
		}
	}
	return m.dynAt
}

// text returns the zero-terminated string at a; ok is false when it is not
// all there. Paths are up to 4,096 bytes long.
func (m *Memory) text(a arch.Addr) (s string, ok bool) {
	var out []byte
	for len(out) < 4096 {
		b := m.piece(a + arch.Addr(len(out)))
		if len(b) == 0 {
			return "", false
		}
		b = b[:min(len(b), 4096-len(out))]
		r := bin.New("string", b)
		for r.Len() > 0 {
			c := r.U8()
			if c == 0 {
				m.View(a, len(out)+1)
				return string(out), true
			}
			out = append(out, c)
		}
	}
	return "", false
}
