package clr

import (
	"fmt"
	"maps"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A build is read by the row of its release where there is nothing better: of
// .NET 10 one that is in no table of builds and whose descriptor is not at hand, of
// .NET 9 every one, because its descriptor says nothing of code. Three things make
// up for a descriptor:
//
//   - a text in the form of one, layouts/net<major>-<os>-<cpu>.json: the layouts that
//     all builds of the release have. Servicing builds do not differ in them (10.0.11
//     to 10.0.14 in none of 413 values, 9.0.18 and 9.0.20 in none of 127). That of
//     .NET 10 is a build's own; where there is none, it is written by hand;
//   - g_dacTable, which every CoreCLR exports for its debugger library and which
//     every kind of dump holds: the addresses of the runtime's variables, and of the
//     vtables of its classes. Servicing builds add entries (8.0.0 has 155, 8.0.31
//     157), so that an entry is found by its number and by what it must point at:
//     see layout_anchor.go;
//   - the build's own descriptor, as far as it goes: it has the last word.
//
// Nothing in a dump tells one release from another, unless the runtime's file with
// its version is at hand. So every row is tried: what is found must pass knows, and
// a descriptor must agree with the row's layouts. (A trimmed dump has the descriptor,
// and not the version.)
type dacTable struct {
	// entries are the globals whose values are addresses of variables in g_dacTable,
	// by the number of the entry in the builds that the row was made from.
	entries map[string]uint64
	// vtables are the numbers of the entries that have the vtables of classes: of
	// explicit Frames, in releases where a Frame begins with its vtable, and of the
	// classes that variableTable.classes finds objects of. nil if Frames begin with an
	// identifier.
	vtables map[string]uint64
}

// dacTableSymbol is exported by CoreCLR on every Unix (src/coreclr/debug/daccess/dacfn.cpp
// looks it up).
const dacTableSymbol = "g_dacTable"

// byDacTable reads the runtime in img by the layouts of a release that fits; nil if
// none does. own is its descriptor, nil if there is none.
func byDacTable(p *loader.Process, img *loader.Image, own *contract) *Runtime {
	at, size, ok := img.Lookup(dacTableSymbol)
	if !ok {
		return nil
	}
	version, commit := newRuntime(p, img, "").version()
	known, use := releaseOf(version)
	for i := range releases {
		row := &releases[i]
		text, err := layouts.ReadFile(fmt.Sprintf("layouts/net%d-%s-%s.json", row.major, p.ABI.OS, p.Arch.Name))
		if err != nil || version != "" && (row != known || use == lentRow) {
			continue
		}
		how := "table"
		if own != nil {
			how = "descriptor and table"
		}
		r := newRuntime(p, img, how)
		if r.Version, r.Commit = version, commit; version == "" {
			r.Version = fmt.Sprintf("%d.0", row.major)
		}
		if r.data, err = parseContract(text, make([]uint64, maxPointers)); err != nil {
			continue
		}
		if version == "" && own != nil && !own.agrees(r.data) {
			continue
		}
		r.table = &variableTable{r: r, row: &row.dac, at: at, entries: int(min(size/8, maxVariables)), own: own}
		r.data.cover(own)
		if r.layouts() == nil && r.knows() {
			return r
		}
	}
	return nil
}

// agrees reports whether the fields that both contracts have lie in the same places,
// as in all builds of a release they do.
func (c *contract) agrees(with *contract) bool {
	for name, at := range c.offsets {
		if other, ok := with.offsets[name]; ok && other != at {
			return false
		}
	}
	return true
}

// cover lays over c what another contract has, which may be nil.
func (c *contract) cover(over *contract) {
	if over != nil {
		maps.Copy(c.offsets, over.offsets)
		maps.Copy(c.globals, over.globals)
		maps.Copy(c.contracts, over.contracts)
	}
}

// knows reports whether most of the runtime's threads are threads of the dump, and
// its map of code has sections, or its application domain has Modules where that map
// is not known: what layouts of another release would not give. Not all threads are,
// because a Thread object keeps the id of a thread that has ended until it is
// finalized, and a dump may lack a thread.
func (r *Runtime) knows() bool {
	ts, _ := r.Threads()
	return r.ofDump(func(i int) uint64 { return ts[i].OSID }, len(ts)) && (r.mapsCode() || r.ranges == 0 && r.leadsToModules())
}

// ofDump reports whether most of n ids are those of threads of the dump. An id
// of 0 is that of a thread that has not started.
func (r *Runtime) ofDump(id func(i int) uint64, n int) bool {
	dumped := make(map[uint64]bool, len(r.proc.Threads))
	for i := range r.proc.Threads {
		dumped[uint64(r.proc.Threads[i].ID)] = true
	}
	with, there := 0, 0
	for i := range n {
		tid := id(i)
		if tid == 0 {
			continue
		}
		with++
		if dumped[tid] {
			there++
		}
	}
	return 2*there > with
}

// mapsCode reports whether the runtime's map of code has a section.
func (r *Runtime) mapsCode() (found bool) {
	r.sections(func(s rangeSection) bool {
		found = s.span.Lo < s.span.Hi
		return !found
	})
	return found
}

// A variableTable is the g_dacTable of a process, as it is read by a row.
type variableTable struct {
	r       *Runtime
	row     *dacTable
	at      arch.Addr
	entries int
	own     *contract // the build's descriptor, nil if there is none
}

// maxVariables bounds the entries of a g_dacTable; known ones have 129 to 158.
const maxVariables = 1 << 10

// entry returns what the k-th entry points at: the address of something in the
// runtime's image.
func (t *variableTable) entry(k int) (at arch.Addr, ok bool) {
	if k < 0 || k >= t.entries {
		return 0, false
	}
	v, ok := t.r.word(t.at + arch.Addr(8*k))
	return arch.Addr(v), ok && t.r.Image.Span().Has(arch.Addr(v))
}

// number returns the number of the entry that is v, -1 if none is.
func (t *variableTable) number(v arch.Addr) int {
	for k := range t.entries {
		if at, ok := t.entry(k); ok && at == v {
			return k
		}
	}
	return -1
}
