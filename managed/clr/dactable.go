package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A dacTable lets a build be read that is in no table, by the layouts of its
// release: servicing builds have the same ones (the descriptors of 10.0.11,
// 10.0.12 and 10.0.14 do not differ in any of 413 values), and only the
// addresses of the runtime's variables move. Those are in g_dacTable, which
// every CoreCLR exports for its debugger library and which every kind of dump
// holds. Nothing in a dump tells a release from another whose table is as long,
// so what is found must pass knows.
type dacTable struct {
	version string // of the release
	layout  func(abi *arch.ABI) string
	size    uint64            // of g_dacTable in bytes
	index   map[string]uint64 // entry that has the address of a global
}

// dacTables lists the releases, the newest first. The order of entries is that
// of src/coreclr/inc/dacvars.h; these are where the descriptors of recorded
// builds and their tables have the same address.
var dacTables = []dacTable{{
	version: "10.0", size: 129 * 8,
	layout: func(abi *arch.ABI) string { return "net10-" + abi.OS + "-" + abi.Arch.Name + ".json" },
	index: map[string]uint64{
		"ExecutionManagerCodeRangeMapAddress": 0,
		"ThreadStore":                         15, "FinalizerThread": 16, "GCThread": 17,
		"AppDomain": 20, "SystemDomain": 21, "ArrayBoundsZero": 28,
		"ObjectMethodTable": 42, "StringMethodTable": 45, "ExceptionMethodTable": 49, "FreeObjectMethodTable": 56,
		"SyncTableEntries": 78, "MiniMetaDataBuffAddress": 85, "MiniMetaDataBuffMaxSize": 86,
	},
}}

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
	for i := range dacTables {
		t := &dacTables[i]
		text, err := layouts.ReadFile("layouts/" + t.layout(p.ABI))
		if size != t.size || err != nil {
			continue
		}
		r := &Runtime{Image: img, How: "table", Version: t.version, proc: p, mem: p.Memory, arch: p.Arch}
		if r.data, err = parseContract(text, make([]uint64, maxPointers)); err != nil {
			continue
		}
		for name, k := range t.index {
			if v, ok := r.word(at + arch.Addr(8*k)); ok && r.data.globals[name].pointer {
				r.data.globals[name] = global{value: v, pointer: true}
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
