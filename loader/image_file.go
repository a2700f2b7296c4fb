package loader

import (
	"cmp"
	"debug/elf"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A source is the file that one or more images were mapped from. It is looked
// for, checked and mapped when it is first needed.
type source struct {
	p      *Process
	find   Finder
	id     ImageID
	path   string
	images []*Image // all that were mapped from it; the file must agree with each

	once     bin.Once
	opened   atomic.Bool
	mapped   []byte  // the whole file, as it was when it was opened; see bytes
	file     string  // path of the file that was taken
	state    Absence // why there is none
	refused  string  // of which files were refused, and why
	verified bool
	elf      *objfile.ELF // nil until a file has been taken
	pes      sync.Map     // *objfile.PE by offset

	debugOnce bin.Once
	debugInfo *debugFile
}

// open returns the file's bytes, or nil.
func (s *source) open() []byte {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		s.state = ImageNotFound
		if s.find == nil {
			return
		}
		if s.choose(each(s.find, s.id, s.path)) {
			s.state = Present
		} else if s.refused != "" {
			s.state = ImageDiffers
			s.p.warnLate("image_differs", "%s", s.refused)
		}
	})
	s.opened.Store(true)
	return s.bytes()
}

// bytes returns what can be read of the file once it is open.
func (s *source) bytes() []byte { return s.p.held.whole(s.mapped) }

// from returns what can be read of the file from an offset on.
func (s *source) from(off uint64) []byte {
	b := s.bytes()
	return b[min(off, uint64(len(b))):]
}

// progs returns the file's program headers, once it is open.
func (s *source) progs() []objfile.Prog {
	if s.elf == nil {
		return nil
	}
	return s.elf.Progs
}

// A candidate is a file that may be a source's.
type candidate struct {
	path string
	data []byte
}

// maxCandidates bounds how many files that would do are compared.
const maxCandidates = 32

// choose takes the first file whose identity is known to be right, else the
// best of those that agree with all that the dump holds.
func (s *source) choose(paths iter.Seq[string]) bool {
	var fit []candidate
	var bytes [][]byte
	for path := range paths {
		c, ok := s.p.held.candidate(path)
		if !ok {
			continue
		}
		f, err := objfile.ParseELF(c.data)
		if err == nil && f.DebugOnly(c.data) {
			s.p.held.drop(c.data) // of the same build-id, but without the bytes that were mapped
			continue
		}
		why, sure := s.check(c.data, f)
		if why != "" {
			s.refused = fmt.Sprintf("%s is not the %s of the dump: %s", path, s.id.Name, why)
			s.p.held.drop(c.data)
			continue
		}
		fit, bytes = append(fit, c), append(bytes, c.data)
		if sure || len(fit) == maxCandidates {
			s.verified = sure
			break
		}
	}
	if len(fit) == 0 {
		return false
	}
	best := len(fit) - 1
	if !s.verified {
		best = 0
		if len(fit) > 1 {
			best = s.best(bytes)
		}
	}
	for i, c := range fit {
		if i != best {
			s.p.held.drop(c.data)
		}
	}
	s.take(fit[best])
	return true
}

// candidate opens the file at path.
func (h *held) candidate(path string) (c candidate, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return c, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return c, false
	}
	data, err := h.open(f, st, st.Size())
	return candidate{path, data}, err == nil && len(data) > 0
}

// take makes c the source's file.
func (s *source) take(c candidate) {
	f, err := objfile.ParseELF(c.data)
	if err != nil {
		f = &objfile.ELF{} // a PE file has no program headers and no ELF sections
	}
	s.elf = f
	s.mapped, s.file, s.refused = c.data, c.path, ""
}

// peAt returns the headers of the PE image at an offset of the file, or nil.
func (s *source) peAt(off uint64) *objfile.PE {
	if h, ok := s.pes.Load(off); ok {
		return h.(*objfile.PE)
	}
	h, err := objfile.ParsePE(s.from(off))
	if err != nil {
		h = nil
	}
	s.pes.Store(off, h)
	return h
}

// check says why data is not the file of the images, or "" when it is or may
// be; sure is whether an identity says so. f is what data is as an ELF file, nil
// if it is none.
func (s *source) check(data []byte, f *objfile.ELF) (why string, sure bool) {
	if f != nil {
		return s.checkELF(data, f)
	}
	h, err := objfile.ParsePE(data)
	if err != nil {
		return "it is neither an ELF nor a PE file", false
	}
	for _, m := range s.images {
		if m.Format != "pe" {
			return "it is a PE file", false
		}
		w, ok := m.checkPE(data, h)
		if w != "" {
			return w, false
		}
		sure = ok || sure
	}
	return "", sure
}

// checkELF compares build-ids where the dump has one. Without, it compares
// what both hold: which file offsets are mapped where, and the dynamic
// section, whose sizes and addresses differ from build to build.
func (s *source) checkELF(data []byte, f *objfile.ELF) (why string, sure bool) {
	if s.p.Arch.Machine != f.Machine {
		return fmt.Sprintf("it is for %v", f.Machine), false
	}
	if s.id.BuildID != "" {
		id := objfile.FileBuildID(data, f.Progs)
		if id != s.id.BuildID {
			return fmt.Sprintf("its build-id is %s, not %s", cmp.Or(id, "missing"), s.id.BuildID), false
		}
		sure = true
	}
	for _, m := range s.images {
		switch {
		case m.Format == "pe": // an assembly in a bundle
			if h, err := objfile.ParsePE(data[min(m.shift, uint64(len(data))):]); m.pe != nil && (err != nil || h.Timestamp != m.pe.Timestamp || h.ImageSize != m.pe.ImageSize) {
				return fmt.Sprintf("it has no assembly %s at offset %#x, where the dump has it", m.ID.Name, m.shift), false
			}
		default:
			if why := m.checkMaps(f.Progs, uint64(len(data))); why != "" {
				return why, false
			}
			if m.copy {
				continue
			}
			if why := m.checkDynamic(data, f.Progs); why != "" {
				return why, false
			}
			if why := m.checkBundle(data, f.Progs); why != "" {
				return why, false
			}
		}
	}
	return "", sure
}

// checkMaps compares where NT_FILE says the file was mapped with where its
// program headers want it.
func (m *Image) checkMaps(progs []objfile.Prog, size uint64) string {
	for _, r := range m.maps {
		if r.off >= size {
			return fmt.Sprintf("it ends at %#x; the dump has it mapped from %#x on", size, r.off)
		}
		// Between segments that are far apart older loaders leave the file
		// mapped without access, at whatever offset: such a gap proves nothing.
		ok, gap := false, true
		for _, p := range progs {
			if s := pageSpan(m.bias+p.Vaddr, p.Memsz); p.Type == elf.PT_LOAD && s.Has(r.Lo) {
				gap = false
				ok = ok || p.Off&^(pageSize-1) == r.off-uint64(r.Lo-s.Lo)
			}
		}
		if !ok && !gap {
			return fmt.Sprintf("it would not be mapped at %v from offset %#x, as the dump has it", r.Lo, r.off)
		}
	}
	return ""
}

// checkDynamic compares the dynamic section with the dump's. The loader adds
// the bias to some entries, and fills in DT_DEBUG.
func (m *Image) checkDynamic(data []byte, progs []objfile.Prog) string {
	const dtDebug = 21
	for _, p := range progs {
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		at := arch.Addr(m.bias + p.Vaddr)
		if m.dynAt != 0 && m.dynAt != at {
			return fmt.Sprintf("its dynamic section would lie at %v, not %v", at, m.dynAt)
		}
		b := m.mem.dumped(at)
		f := bin.Slice(data, p.Off, min(p.Filesz, uint64(len(b))))
		for i := 0; i+16 <= len(f); i += 16 {
			tag, v, w := le64(f[i:]), le64(f[i+8:]), le64(b[i+8:])
			if tag != le64(b[i:]) || tag != dtDebug && v != w && v+m.bias != w {
				return fmt.Sprintf("its dynamic section differs from the dump's at %v", at+arch.Addr(i))
			}
			if tag == 0 {
				break
			}
		}
	}
	return ""
}

// checkPE compares timestamp and size of the image where the dump has its
// header. Without (gcore's dumps hold no header page of a PE image), it
// compares the file's size, where sections are mapped, and the RUNTIME_FUNCTIONs
// that both hold.
func (m *Image) checkPE(data []byte, h *objfile.PE) (why string, sure bool) {
	if !h.For(m.arch) {
		return fmt.Sprintf("it is for machine %#x", h.Machine), false
	}
	if m.ID.Timestamp != 0 || m.ID.Size != 0 {
		if h.Timestamp != m.ID.Timestamp || h.ImageSize != m.ID.Size {
			return fmt.Sprintf("its timestamp and size are %08X%x, not %08X%x", h.Timestamp, h.ImageSize, m.ID.Timestamp, m.ID.Size), false
		}
		return "", true
	}
	if m.Flat {
		if want, got := uint64(m.span.Hi-m.span.Lo), uint64(pageSpan(0, uint64(len(data))).Hi); want != got {
			return fmt.Sprintf("it has %#x bytes in pages, and %#x were mapped", got, want), false
		}
		return "", false
	}
	for _, r := range m.maps {
		ok := r.Lo == m.span.Lo && r.off == m.shift&^(pageSize-1)
		for i := range h.Sections {
			s := &h.Sections[i]
			at := pageSpan(m.bias+uint64(s.VA), uint64(max(s.VSize, s.RawSize)))
			ok = ok || at.Has(r.Lo) && r.off-uint64(r.Lo-at.Lo) == (m.shift+uint64(s.RawOff))&^(pageSize-1)
		}
		if !ok {
			return fmt.Sprintf("none of its sections would be mapped at %v from offset %#x, as the dump has it", r.Lo, r.off), false
		}
	}
	if d, ok := h.Dir(objfile.PEExceptions); ok {
		if off, n, ok := h.FileOff(d.RVA); ok {
			b := m.mem.dumped(arch.Addr(m.bias + uint64(d.RVA)))
			k := min(uint64(len(b)), uint64(d.Size), uint64(n), 1<<16)
			if f := bin.Slice(data, m.shift+uint64(off), k); f == nil || string(f) != string(b[:k]) {
				return "its table of functions differs from the dump's", false
			}
		}
	}
	return "", false
}
