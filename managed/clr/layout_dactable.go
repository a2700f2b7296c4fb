package clr

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A dacTable lets a build be read that is in no table of builds, by the layouts of
// another build of its release. Servicing builds have the same ones (the descriptors
// of 10.0.11, 10.0.12 and 10.0.14 do not differ in any of 413 values), and only the
// addresses of the runtime's variables move. Those are in g_dacTable, which every
// CoreCLR exports for its debugger library and which every kind of dump holds.
// Nothing in a dump tells a release from another whose table is as long, so what is
// found must pass knows.
//
// The layouts are a descriptor's text, layouts/net10-linux-....json for .NET 10. A
// release whose builds have no descriptor needs one that is written by hand.
type dacTable struct {
	size uint64 // of g_dacTable in bytes; 0 if builds of the release are not read so
	// entries are the globals of the text whose values are in g_dacTable, by the
	// number of the entry: addresses of variables, and in releases whose explicit
	// Frames are known by their vtables the addresses of those.
	entries map[string]uint64
}

// dacTableSymbol is exported by CoreCLR on every Unix (src/coreclr/debug/daccess/dacfn.cpp
// looks it up).
const dacTableSymbol = "g_dacTable"

// byDacTable reads the runtime in img by the layouts of a release that fits;
// nil if none does.
func byDacTable(p *loader.Process, img *loader.Image) *Runtime {
	at, size, ok := img.Lookup(dacTableSymbol)
	if !ok {
		return nil
	}
	for i := range releases {
		row := &releases[i]
		text, err := layouts.ReadFile(fmt.Sprintf("layouts/net%d-%s-%s.json", row.major, p.ABI.OS, p.Arch.Name))
		if size != row.dac.size || err != nil {
			continue
		}
		r := newRuntime(p, img, "table", fmt.Sprintf("%d.0", row.major))
		if r.data, err = parseContract(text, make([]uint64, maxPointers)); err != nil {
			continue
		}
		for name, k := range row.dac.entries {
			g, ok := r.data.globals[name]
			if v, there := r.word(at + arch.Addr(8*k)); ok && there {
				g.value = v
				r.data.globals[name] = g
			}
		}
		if r.layouts() == nil && r.knows() {
			return r
		}
	}
	return nil
}

// knows reports whether most of the runtime's threads are threads of the dump,
// and its map of code has sections: what layouts of another release would not
// give. Not all are, because a Thread object keeps the id of a thread that has
// ended until it is finalized, and a dump may lack a thread.
func (r *Runtime) knows() bool {
	dumped := make(map[uint64]bool, len(r.proc.Threads))
	for i := range r.proc.Threads {
		dumped[uint64(r.proc.Threads[i].ID)] = true
	}
	ts, _ := r.Threads()
	with, there := 0, 0
	for i := range ts {
		tid := ts[i].OSID
		if tid == 0 {
			continue
		}
		with++
		if dumped[tid] {
			there++
		}
	}
	if 2*there <= with {
		return false
	}
	found := false
	r.sections(func(s rangeSection) bool {
		found = s.span.Lo < s.span.Hi
		return !found
	})
	return found
}
