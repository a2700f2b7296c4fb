package unwind

import (
	"cmp"
	"slices"
	"sort"

	"github.com/seamwalk/seam/arch"
)

// An index finds FDEs in a section that comes without a sorted table. It is
// built once, from end to end of the section.
type index []indexed

// A sectionEnd says what ends a section of FDEs.
type sectionEnd uint8

const (
	atEnd        sectionEnd = iota // its last byte, which is known
	atTerminator                   // a record of length zero, or the end of the image
)

type indexed struct {
	lo, hi arch.Addr
	fde    arch.Addr
}

// build indexes the FDEs in where. What is broken in the midst ends it, and
// what was found before stays: nothing says where the next record begins. A
// terminator does not end a section whose end is known: each object that a
// linker joins may bring one.
func (x *index) build(t *cfi, where arch.Span, end sectionEnd) fault {
	*x = nil // of an attempt that was broken off
	var r record
	var first fault
	for a := where.Lo; a < where.Hi && where.Hi-a >= 4; a = r.next {
		c, f := t.head(a, &r)
		if f.reason != 0 {
			if len(*x) == 0 {
				return f
			}
			break
		}
		if r.end && end == atTerminator {
			break
		}
		if r.end || r.isCIE {
			continue
		}
		var d fde
		if f := t.body(&r, &c, &d); f.reason != 0 {
			first = f
			continue
		}
		// Functions that the linker dropped keep an FDE in .debug_frame,
		// at address 0 or thereabouts.
		if d.code.Hi > d.code.Lo && t.span.Has(d.code.Lo) && d.code.Hi <= t.span.Hi {
			*x = append(*x, indexed{d.code.Lo, d.code.Hi, r.at})
		}
	}
	if len(*x) == 0 {
		return first
	}
	slices.SortStableFunc(*x, func(a, b indexed) int { return cmp.Compare(a.lo, b.lo) })
	return fault{}
}

// find returns where the FDE lies that covers a, or noFDE.
func (x index) find(a arch.Addr) arch.Addr {
	i := sort.Search(len(x), func(i int) bool { return x[i].lo > a })
	if i == 0 || a >= x[i-1].hi {
		return noFDE
	}
	return x[i-1].fde
}
