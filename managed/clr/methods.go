package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// Bounds of an enumeration. RVAs have 32 bits, so a heap cannot be larger than
// what they reach; the pages of nibble maps that are asked for, and the methods
// that they list, are bounded over all heaps, or hostile ones, which may all
// have one map, could be as many as fit a dump.
const (
	maxHeap     = 1 << 32
	maxMapPages = 1 << 20
	maxMethods  = 1 << 23
)

// Compiled yields every piece of code that the JIT compiler made and that is
// still alive: methods, IL stubs and DynamicMethods, and blocks of stubs. Names are
// left to Describe, which costs more than all the rest. Funclets belong to their method. Heaps come in the order of the
// runtime's map, methods of one heap by address.
func (r *Runtime) Compiled(yield func(code.Compiled) bool) {
	e := enumeration{r: r, yield: yield, pages: maxMapPages, left: maxMethods}
	r.heaps(e.heap)
}

type enumeration struct {
	r     *Runtime
	yield func(code.Compiled) bool
	pages int
	left  int // pieces of code that may still be looked at
	done  bool

	heapNow *codeHeap
	start   arch.Addr // the code whose end is not known yet, 0: none
}

// heap goes through one heap's nibble map from its first unit to its last.
// What a page of the map would say that the dump lacks is left out.
func (e *enumeration) heap(h codeHeap) bool {
	if h.End <= h.MapBase || h.End-h.MapBase > maxHeap {
		return true
	}
	e.heapNow, e.start = &h, 0
	units := (uint64(h.End-h.MapBase)/nibbleBucket)/nibblesInUnit + 1
	for unit := uint64(0); unit < units && !e.done; {
		at := h.HeaderMap + arch.Addr(4*unit)
		n := min((pageSize-uint64(at%pageSize))/4, units-unit)
		if n == 0 { // a map that is not aligned to its units is none
			return true
		}
		if e.pages--; e.pages < 0 {
			return false
		}
		if b := e.r.mem.View(at, int(4*n)); b != nil {
			for i := range n {
				e.unit(unit+i, le32(b[4*i:]))
			}
		}
		unit += n
	}
	e.code(h.End + codeHeaderSize)
	return !e.done
}

// unit reports the starts of one unit. One that points back to a start in
// another has none of its own.
func (e *enumeration) unit(unit uint64, u uint32) {
	if u == 0 {
		return
	}
	if _, ok := e.r.pointerUnit(e.heapNow, u); ok {
		return
	}
	for i := range uint64(nibblesInUnit) {
		if n := u >> (28 - 4*i) & 15; n != 0 && n <= nibbleBucket/nibbleAlign {
			e.code(e.heapNow.MapBase + arch.Addr((unit*nibblesInUnit+i)*nibbleBucket) + arch.Addr(n-1)*nibbleAlign)
		}
	}
}

// codeHeaderSize is the size of a CodeHeader, a pointer right before the code.
const codeHeaderSize = 8

// code yields the code that began last, now that what follows it is known:
// the header of the code at next.
func (e *enumeration) code(next arch.Addr) {
	start := e.start
	if e.start = next; start == 0 || e.done {
		return
	}
	if e.left--; e.left < 0 {
		e.done = true
		return
	}
	r, l := e.r, &e.r.codeLayout
	v, ok := r.word(start - codeHeaderSize)
	if !ok {
		return
	}
	m := code.Compiled{Span: arch.Span{Lo: start, Hi: next - codeHeaderSize}, Source: "clr"}
	if v <= r.stubLast {
		m.Kind, m.Stub = code.CompiledStub, r.stubBlock(v)
		e.done = !e.yield(m)
		return
	}
	header := arch.Addr(v)
	md, ok := r.word(field(header, l.HdrMethod))
	if !ok {
		return
	}
	m.ID = arch.Addr(md)
	if class, ok := r.methodClass(arch.Addr(md)); ok && class == classDynamic {
		m.Kind = code.CompiledDynamic
	}
	// The last RUNTIME_FUNCTION, the body's or a funclet's, ends where the
	// code does. On CPUs whose entries have no end the next header bounds it.
	if n, ok := r.u32(field(header, l.HdrCount)); ok && n > 0 && n <= maxUnwindInfos {
		if f, missing := r.function(field(header, l.HdrUnwinds), n-1); missing == 0 && f.End != 0 {
			if end := e.heapNow.Base + arch.Addr(f.End); end > start && end <= m.Span.Hi {
				m.Span.Hi = end
			}
		}
	}
	e.done = !e.yield(m)
}
