package clr

import (
	"github.com/seamwalk/seam/arch"
)

// The RangeSectionMap of 64-bit processes is a tree of five levels over bits
// 17 to 56 of an address; the top level lies in the map itself
// (src/coreclr/vm/codeman.h, RangeSectionMap; docs/design/datacontracts/ExecutionManager.md).
const (
	rangeLevels    = 5
	rangeLevelBits = 8
	rangeLeafShift = 17 // a leaf covers 128 KiB
	rangeSlots     = 1 << rangeLevelBits
)

// maxFragments bounds the fragments of one leaf, of which each covers another
// part of its 128 KiB.
const maxFragments = 1 << 12

// Flags of a RangeSection (src/coreclr/vm/codeman.h, RangeSection::RangeSectionFlags).
const (
	rangeCollectible = 1
	rangeCodeHeap    = 2
	rangeList        = 4 // precodes and other stubs
)

type rangeSection struct {
	span  arch.Span
	flags uint32
	jit   arch.Addr // its JIT manager, 0 if that is not known
	heap  arch.Addr // CodeHeapListNode of a code heap
	r2r   arch.Addr // Module of a ReadyToRun image
	list  arch.Addr // CodeRangeMapRangeList of stubs
}

// collectible is stolen from every pointer of the map.
const collectibleBit = 1

// section finds the RangeSection that holds ip. If it cannot tell because a
// word is missing from the dump, missing is that word's address.
func (r *Runtime) section(ip arch.Addr) (s rangeSection, ok bool, missing arch.Addr) {
	if r.ranges == 0 {
		return s, false, r.table.at // which should have led to it
	}
	level := field(r.ranges, r.codeLayout.MapTop)
	for n := rangeLevels - 1; n >= 0; n-- {
		i := uint64(ip) >> (rangeLeafShift + rangeLevelBits*n) % rangeSlots
		at := level + arch.Addr(8*i)
		v, ok := r.word(at)
		if !ok {
			return s, false, at
		}
		if level = arch.Addr(v &^ collectibleBit); level == 0 {
			return s, false, 0
		}
	}
	l := &r.codeLayout
	for frag, n := level, 0; frag != 0 && n < maxFragments; n++ {
		b := r.mem.View(frag, l.fragmentSize())
		if b == nil {
			return s, false, r.missing(frag, l.fragmentSize())
		}
		lo, hi := le64(b[l.FragBegin:]), le64(b[l.FragEnd:])
		if uint64(ip) >= lo && uint64(ip) < hi {
			return r.rangeSection(arch.Addr(le64(b[l.FragSection:]) &^ collectibleBit))
		}
		frag = arch.Addr(le64(b[l.FragNext:]) &^ collectibleBit)
	}
	return s, false, 0
}

// rangeSection reads the RangeSection at a.
func (r *Runtime) rangeSection(a arch.Addr) (s rangeSection, ok bool, missing arch.Addr) {
	l := &r.codeLayout
	b := r.mem.View(a, l.sectionSize())
	if b == nil {
		return s, false, r.missing(a, l.sectionSize())
	}
	// A section that waits for its deletion holds no code any more.
	if le64(b[l.SecNextForDelete:]) != 0 {
		return s, false, 0
	}
	s.span = arch.Span{Lo: arch.Addr(le64(b[l.SecBegin:])), Hi: arch.Addr(le64(b[l.SecEnd:]))}
	s.flags = le32(b[l.SecFlags:])
	s.heap = arch.Addr(le64(b[l.SecHeap:]))
	s.r2r = arch.Addr(le64(b[l.SecR2R:]))
	if l.SecJit >= 0 {
		s.jit = arch.Addr(le64(b[l.SecJit:]))
	}
	if l.SecList >= 0 {
		s.list = arch.Addr(le64(b[l.SecList:]))
	}
	return s, true, 0
}

// maxRangeWords bounds the words of the map that are read to list its sections,
// and its fragments: a level of 256 words covers 32 MiB of addresses, the next
// 8 GiB. A forged map may have few levels that lead to each other.
const maxRangeWords = 1 << 20

// sections yields every RangeSection once. It reads the whole map, within
// bounds that no real process comes near.
func (r *Runtime) sections(yield func(rangeSection) bool) {
	if r.ranges == 0 {
		return
	}
	seen := map[arch.Addr]bool{}
	left := maxRangeWords
	var descend func(level arch.Addr, depth int) bool
	descend = func(level arch.Addr, depth int) bool {
		l := &r.codeLayout
		if depth == 0 {
			for frag := level; frag != 0; {
				b := r.mem.View(frag, l.fragmentSize())
				if left--; left < 0 || b == nil {
					return left >= 0
				}
				if at := arch.Addr(le64(b[l.FragSection:]) &^ collectibleBit); !seen[at] {
					seen[at] = true
					if s, ok, _ := r.rangeSection(at); ok && !yield(s) {
						return false
					}
				}
				frag = arch.Addr(le64(b[l.FragNext:]) &^ collectibleBit)
			}
			return true
		}
		if left -= rangeSlots; left < 0 {
			return false
		}
		for i := range rangeSlots {
			v, ok := r.word(level + arch.Addr(8*i))
			if v &^= collectibleBit; !ok || v == 0 {
				continue
			}
			if !descend(arch.Addr(v), depth-1) {
				return false
			}
		}
		return true
	}
	descend(field(r.ranges, r.codeLayout.MapTop), rangeLevels)
}

// A codeHeap is one heap of JIT-compiled code and its nibble map.
type codeHeap struct {
	Start, End         arch.Addr
	MapBase, HeaderMap arch.Addr
	Base               arch.Addr // begin of its RangeSection: what RVAs in it are relative to
	Collectible        bool
}

// heaps yields every heap of JIT-compiled code.
func (r *Runtime) heaps(yield func(codeHeap) bool) {
	r.sections(func(s rangeSection) bool {
		if s.r2r != 0 || s.flags&rangeCodeHeap == 0 {
			return true
		}
		h, ok, _ := r.codeHeap(s)
		return !ok || yield(h)
	})
}

// codeHeap reads the heap of a section.
func (r *Runtime) codeHeap(s rangeSection) (h codeHeap, ok bool, missing arch.Addr) {
	l := &r.codeLayout
	b := r.mem.View(s.heap, l.heapSize())
	if b == nil {
		return h, false, r.missing(s.heap, l.heapSize())
	}
	return codeHeap{
		Start: arch.Addr(le64(b[l.HeapStart:])), End: arch.Addr(le64(b[l.HeapEnd:])),
		MapBase: arch.Addr(le64(b[l.HeapBase:])), HeaderMap: arch.Addr(le64(b[l.HeapMap:])),
		Base: s.span.Lo, Collectible: s.flags&rangeCollectible != 0,
	}, true, 0
}
