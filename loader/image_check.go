package loader

import (
	"cmp"
	"debug/elf"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

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

// checkELF compares the build-id of a file with the dump's, if the dump has one.
// In any case it compares what both the file and the dump hold: which file offsets
// are mapped where, and the dynamic section, whose sizes and addresses differ from
// build to build.
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

// checkPE compares timestamp and size of the image, if the dump has them. Dumps of
// gcore's do not, as they hold no header page of a PE image. Then the size of the
// file must fit, sections must lie where they are mapped, and the
// RUNTIME_FUNCTIONs must be those of the dump, as far as the dump has them.
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
