package clr

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
)

// A composite image has the code of several assemblies, its components. It lists
// for each a header of its own, without signature and version, that leads to the
// tables of the component's methods, and its MVID, which its Module has too
// (docs/design/coreclr/botr/readytorun-format.md, READYTORUN_SECTION_COMPONENT_ASSEMBLIES
// and _MANIFEST_ASSEMBLY_MVIDS, whose first entries are of the components).
const (
	componentSize   = 16 // CLR header, own header: RVA and size each
	componentHeader = 8
	coreCount       = 4 // of the own header: number of sections
	coreSections    = 8
	mvidSize        = 16
	maxComponents   = 1 << 12
)

// An imagePart is an image, or a component of a composite one, which has a table of
// the entry points of its own methods. Those of its instantiations are in a table of
// the whole, whose signatures are of several components; they are not read.
type imagePart struct {
	info   arch.Addr // its ReadyToRunInfo
	item   arch.Addr // the entry of the domain's list that leads to its Module, or 0
	tables entryTables
}

// parts returns the parts of the image that img, which info leads to, is or is a
// component of: info's own, or those of all Modules of the same composite image.
func (r *Runtime) parts(info arch.Addr, img *r2rImage, base arch.Addr) (parts []imagePart) {
	if img.whole == info {
		return []imagePart{{info: info, tables: r.entryTables(img.header, base)}}
	}
	header, _ := r.word(field(img.whole, r.codeLayout.R2RHeader))
	components := r.components(arch.Addr(header), base)
	if len(components) == 0 {
		return nil
	}
	l, quiet, seen := &r.codeLayout, r.mem.Untracked(), map[uint64]bool{}
	r.loadedModules(quiet, func(mod, item arch.Addr) bool {
		v, ok := quiet.Word(field(mod, l.ModuleR2R))
		if !ok || v == 0 || seen[v] {
			return true
		}
		seen[v] = true
		info := arch.Addr(v)
		back, ok1 := quiet.Word(info) // its first field
		whole, ok2 := quiet.Word(field(info, l.R2RComposite))
		if m := r.module(mod); ok1 && ok2 && arch.Addr(back) == mod && arch.Addr(whole) == img.whole && m.err == nil {
			if mvid, err := m.meta.MVID(); err == nil && components[mvid].rows != 0 {
				parts = append(parts, imagePart{info, item, components[mvid]})
			}
		}
		return true
	})
	return parts
}

// components returns, by MVID, the tables of the components of the composite image
// with the header. An MVID that several have leads to none.
func (r *Runtime) components(header, base arch.Addr) map[string]entryTables {
	list, ok1 := r.imageSection(header, r2rComponents)
	mvids, ok2 := r.imageSection(header, r2rMVIDs)
	if !ok1 || !ok2 {
		return nil
	}
	out := map[string]entryTables{}
	for i := range arch.Addr(min(list.size/componentSize, mvids.size/mvidSize, maxComponents)) {
		b := r.linked(base+arch.Addr(list.rva)+i*componentSize, componentSize)
		id := r.linked(base+arch.Addr(mvids.rva)+i*mvidSize, mvidSize)
		if b == nil || id == nil {
			return nil
		}
		at := base + arch.Addr(le32(b[componentHeader:]))
		core := r.linked(at, coreSections)
		if core == nil {
			return nil
		}
		rva, size, ok := r.listed(at+coreSections, le32(core[coreCount:]), r2rEntryPoints)
		le := binary.LittleEndian
		mvid := fmt.Sprintf("%08X%04X%04X%X", le.Uint32(id), le.Uint16(id[4:]), le.Uint16(id[6:]), id[8:])
		t := entryTables{rows: base + arch.Addr(rva), size: size}
		if _, again := out[mvid]; again || !ok {
			t = entryTables{}
		}
		out[mvid] = t
	}
	return out
}

// keepPart reads again, so that a trim keeps it, what led to a part of the image
// whose ReadyToRunInfo is whole. It returns the part's Module.
func (r *Runtime) keepPart(p *imagePart, whole arch.Addr) (mod arch.Addr, ok bool) {
	if p.item != 0 {
		r.assemblyModule(r.mem, p.item)
	}
	x, ok := r.r2rImage(p.info)
	if !ok || x.whole != whole {
		return 0, false
	}
	r.word(field(x.module, r.codeLayout.ModuleR2R))
	return x.module, true
}
