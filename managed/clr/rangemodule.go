package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A moduleRanges has the Modules whose images hold ReadyToRun code, by where the
// image lies. It stands in for the map of code ranges where a dump lacks a part of
// that: createdump of .NET 8 leaves out levels of it whose sections no walk of its
// own has met.
type moduleRanges struct {
	once   bin.Once
	byBase map[arch.Addr]definition // only mod and item are set
}

// moduleSection returns the section of the ReadyToRun image that holds ip, without
// the map of ranges: as the image's Module has it. It is not ok where no loaded
// Module says that the image is its own.
func (r *Runtime) moduleSection(ip arch.Addr) (s rangeSection, ok bool) {
	img := r.proc.ImageAt(ip)
	if img == nil || img.Format != "pe" {
		return s, false
	}
	x := &r.modules
	x.once.Do(func() {
		x.byBase = map[arch.Addr]definition{}
		all := r.mem.Untracked()
		quiet := &Runtime{mem: all, names: r.names}
		r.loadedModules(all, func(mod, item arch.Addr) bool {
			if base, _ := quiet.moduleBase(mod); base != 0 {
				x.byBase[base] = definition{mod: mod, item: item}
			}
			return true
		})
	})
	span := img.Span()
	d, ok := x.byBase[span.Lo]
	if !ok {
		return s, false
	}
	// Of all that was read, a trim keeps what led to this one.
	if d.item != 0 {
		r.assemblyModule(r.mem, d.item)
	}
	base, _ := r.moduleBase(d.mod)
	at, _ := r.pointerAt(field(d.mod, r.codeLayout.ModuleR2R))
	image, ok := r.r2rImage(at)
	if !ok || base != span.Lo || image.module != d.mod || !span.Has(image.header) {
		return s, false
	}
	return rangeSection{span: span, r2r: d.mod}, true
}
