package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// lookupR2R looks ip up in a ReadyToRun image (src/coreclr/vm/codeman.cpp,
// ReadyToRunJitManager::JitCodeToMethodInfo).
func (r *Runtime) lookupR2R(s rangeSection, ip arch.Addr) (c Code, missing arch.Addr) {
	l := &r.codeLayout
	at := s.r2r + arch.Addr(l.ModuleR2R)
	v, ok := r.word(at)
	if !ok {
		return c, at
	}
	info := arch.Addr(v)
	rva := uint32(ip - s.span.Lo)
	if in, missing := r.inThunks(info, rva); missing != 0 {
		return c, missing
	} else if in {
		c.Kind, c.Stub = code.Stub, code.StubDelayLoad
		return c, 0
	}
	funcs, ok1 := r.word(info + arch.Addr(l.R2RFuncs))
	n, ok2 := r.u32(info + arch.Addr(l.R2RNumFuncs))
	if !ok1 || !ok2 {
		return c, info + arch.Addr(l.R2RFuncs)
	}
	// From here on the answer is that this is managed code; what may be
	// missing is which.
	c.Kind, c.Base, c.Header = code.ReadyToRun, s.span.Lo, info
	i, missing := r.searchFunctions(arch.Addr(funcs), n, rva)
	if missing != 0 {
		return c, missing
	}
	if i < 0 {
		return Code{}, 0
	}
	f, missing := r.function(arch.Addr(funcs), uint32(i))
	if missing != 0 {
		return c, missing
	}
	c.setBody(f)
	hot, missing := r.hotIndex(info, uint32(i))
	if missing != 0 {
		return c, missing
	}
	if missing = r.entryPoint(&c, arch.Addr(funcs), hot); hot != uint32(i) {
		r.cold(&c)
	}
	return c, missing
}

// cold says of c that it is the cold part of its method, or a funclet there: of the
// method's own part the unwind information leads on to that of the hot part, a
// funclet's stands for itself (ReadyToRunJitManager::IsFunclet,
// src/coreclr/vm/codeman.cpp).
func (r *Runtime) cold(c *Code) {
	c.Cold = true
	chained, ok := false, false
	if r.arch.PE.Chained != nil {
		chained, ok = r.arch.PE.Chained(r.mem, c.Base+arch.Addr(c.Unwind))
	}
	c.FuncletKnown = c.FuncletKnown && ok
	c.Funclet = c.FuncletKnown && !chained
}

// inThunks reports whether rva lies in the image's delay-load thunks, which
// are stubs.
func (r *Runtime) inThunks(info arch.Addr, rva uint32) (in bool, missing arch.Addr) {
	at := info + arch.Addr(r.codeLayout.R2RThunks)
	dir, ok := r.word(at)
	if !ok {
		return false, at
	}
	if dir == 0 {
		return false, 0
	}
	b := r.linked(arch.Addr(dir), 8) // IMAGE_DATA_DIRECTORY
	if b == nil {
		// Of the image's header, which many dumps leave out; thunks are
		// rare, and no place to look for a method in.
		return false, 0
	}
	lo, size := le32(b), le32(b[4:])
	return rva-lo < size, 0
}

// hotIndex returns the index of the hot part of the method whose cold part
// RUNTIME_FUNCTION i is, or i itself (docs/design/coreclr/botr/readytorun-format.md,
// READYTORUN_SECTION_HOT_COLD_MAP; HotColdMappingLookupTable::LookupMappingForMethod,
// src/coreclr/vm/codeman.cpp). Only composite images split methods.
func (r *Runtime) hotIndex(info arch.Addr, i uint32) (hot uint32, missing arch.Addr) {
	l := &r.codeLayout
	n, ok1 := r.u32(info + arch.Addr(l.R2RNumHot))
	table, ok2 := r.word(info + arch.Addr(l.R2RHotCold))
	if !ok1 || !ok2 {
		return i, info + arch.Addr(l.R2RHotCold)
	}
	// Pairs of (cold index, hot index), sorted.
	lo, hi := uint32(0), n/2
	for lo < hi {
		m := (lo + hi) / 2
		at := arch.Addr(table) + arch.Addr(8*uint64(m))
		b := r.linked(at, 4)
		if b == nil {
			return i, at
		}
		if le32(b) <= i {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return i, 0
	}
	at := arch.Addr(table) + arch.Addr(8*uint64(lo-1)) + 4
	b := r.linked(at, 4)
	if b == nil {
		return i, at
	}
	// Cold parts lie behind all hot ones; what is not so is no map.
	if hot = le32(b); hot >= i {
		return i, at
	}
	return hot, 0
}

// maxFunclets bounds the search back from a funclet to its method.
const maxFunclets = 1 << 14

// entryPoint finds the method that RUNTIME_FUNCTION i belongs to: the nearest
// at or before it whose entry point the runtime has given to a MethodDesc.
// Funclets follow their method and have none.
func (r *Runtime) entryPoint(c *Code, funcs arch.Addr, i uint32) (missing arch.Addr) {
	l := &r.codeLayout
	at := c.Header + arch.Addr(l.R2RComposite)
	composite, ok := r.word(at)
	if !ok {
		return at
	}
	table := arch.Addr(composite) + arch.Addr(l.R2REntries)
	probes := maxEntryProbes
	for n := 0; n < maxFunclets; n++ {
		f, missing := r.function(funcs, i)
		if missing != 0 {
			return missing
		}
		start := c.Base + arch.Addr(f.Begin)
		md, missing := r.hashLookup(table, uint64(start), &probes)
		if missing != 0 {
			return missing
		}
		if md != 0 {
			c.Method, c.Start, c.Index = arch.Addr(md), start, i
			c.Funclet, c.FuncletKnown = n > 0, true
			return 0
		}
		if i == 0 {
			return 0
		}
		i--
	}
	return 0
}

// Bounds of the buckets of four that one key is looked for in, and the keys of
// one method's funclets together. The runtime keeps its tables no more than
// three quarters full, where a dozen probes are rare.
const (
	maxProbes      = 1 << 10
	maxEntryProbes = 1 << 16
)

// hashLookup looks key up in the runtime's PtrHashMap at table; 0 if it is not
// there (src/coreclr/vm/hash.cpp, HashMap::LookupValue). It takes from left what
// buckets it looks into; a table that leads on for longer is damaged, and counts
// as missing.
func (r *Runtime) hashLookup(table arch.Addr, key uint64, left *int) (value uint64, missing arch.Addr) {
	l := &r.codeLayout
	at := table + arch.Addr(l.HashBuckets)
	buckets, ok := r.word(at)
	if !ok {
		return 0, at
	}
	// The first bucket holds the number of the others.
	n, ok := r.u32(arch.Addr(buckets))
	if !ok {
		return 0, arch.Addr(buckets)
	}
	if n < 2 {
		return 0, 0
	}
	// HashMap::HashFunction: where to begin, and by how much to go on.
	size := arch.Addr(l.BucketSize)
	seed := uint32(key >> 2)
	inc := 1 + (uint32(key>>5)+1)%(n-1)
	most := min(*left, maxProbes)
	for range min(n, uint32(most)) {
		*left--
		b := arch.Addr(buckets) + size*arch.Addr(1+seed%n)
		for slot := range arch.Addr(4) {
			k, ok := r.word(b + arch.Addr(l.BucketKeys) + 8*slot)
			if !ok {
				return 0, b + arch.Addr(l.BucketKeys) + 8*slot
			}
			if k == key {
				v, ok := r.word(b + arch.Addr(l.BucketValues) + 8*slot)
				if !ok {
					return 0, b + arch.Addr(l.BucketValues) + 8*slot
				}
				return v << 1, 0 // stored halved; bit 63 is the bucket's mark
			}
		}
		v, ok := r.word(b + arch.Addr(l.BucketValues))
		if !ok {
			return 0, b + arch.Addr(l.BucketValues)
		}
		if v>>63 == 0 { // no key was ever pushed on from this bucket
			return 0, 0
		}
		seed += inc
	}
	if n > uint32(most) {
		return 0, arch.Addr(buckets)
	}
	return 0, 0
}
