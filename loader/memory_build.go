package loader

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/seamwalk/seam/arch"
)

// lists has the memory know what was mapped, as the dump lists it, in any order.
// Of two mappings that overlap the lower one answers for what both cover.
func (m *Memory) lists(mapped []mapping) {
	slices.SortStableFunc(mapped, func(a, b mapping) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := 1; i < len(mapped); i++ {
		mapped[i].Lo = max(mapped[i].Lo, min(mapped[i-1].Hi, mapped[i].Hi))
		mapped[i].Hi = max(mapped[i].Hi, mapped[i-1].Hi)
	}
	m.mapped = mapped
}

// holds has the memory take bytes from the dump, data, where pieces say that they
// lie: in any order, and within data.
func (m *Memory) holds(data []byte, pieces []extent) {
	pieces = arrange(pieces)
	m.segs = make([]segment, len(pieces))
	for i, e := range pieces {
		m.segs[i] = segment{e.lo, data[e.off : e.off+e.n : e.off+e.n]}
	}
}

// An extent is a run of memory, and where the dump has its bytes.
type extent struct {
	lo     arch.Addr
	off, n uint64
}

func (e *extent) hi() arch.Addr { return e.lo + arch.Addr(e.n) }

// arrange sorts extents by address and cuts what overlaps: a byte that several
// hold stays with the first of them in list. Neighbours in memory whose bytes are
// neighbours in the file too become one extent, which shortens the list: the
// kernel splits a stack from its guard, and createdump every mapping by its
// permissions.
func arrange(list []extent) []extent {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(list[i].lo, list[j].lo), cmp.Compare(i, j))
	})
	out := make([]extent, 0, len(list))
	put := func(e extent) {
		if k := len(out) - 1; k >= 0 && out[k].hi() == e.lo && out[k].off+out[k].n == e.off {
			out[k].n += e.n
			return
		}
		out = append(out, e)
	}
	// A sweep over the begins and ends; the heap has the extents that hold
	// the current address, the first of the file on top.
	var active intHeap
	at := arch.Addr(0)
	sweep := func(until arch.Addr) {
		for len(active) > 0 && at < until {
			e := &list[active[0]]
			if e.hi() <= at {
				heap.Pop(&active)
				continue
			}
			hi := min(e.hi(), until)
			put(extent{at, e.off + uint64(at-e.lo), uint64(hi - at)})
			at = hi
		}
	}
	for _, i := range order {
		sweep(list[i].lo)
		at = list[i].lo
		heap.Push(&active, i)
	}
	sweep(^arch.Addr(0))
	return out
}

// An intHeap has its smallest number first.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any          { n := len(*h) - 1; x := (*h)[n]; *h = (*h)[:n]; return x }

// joined sorts spans, and joins those that overlap or touch.
func joined(spans []arch.Span) []arch.Span {
	slices.SortFunc(spans, func(a, b arch.Span) int { return cmp.Compare(a.Lo, b.Lo) })
	n := 0
	for _, s := range spans {
		if n > 0 && s.Lo <= spans[n-1].Hi {
			spans[n-1].Hi = max(spans[n-1].Hi, s.Hi)
			continue
		}
		spans[n] = s
		n++
	}
	return spans[:n]
}
