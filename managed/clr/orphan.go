package clr

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// Orphans are methods whose code header the dump lacks: createdump writes what
// its own walk of the process has touched, and that loses the managed frames
// of a thread whose native leaf has left no explicit Frame (a seventh of the
// threads of a busy process, and every one in an enter hook of a profiler). The
// code itself is there, and the precode through which it is called.

// OrphanRule finds how to leave the frame with regs of an orphan at the return
// address pc: by where its code takes the frame down, be pc in the method's
// body or in a funclet, else by the prologue of the body. once says that the
// rule rests on regs: it is not one for every frame at pc.
func (r *Runtime) OrphanRule(c *Code, pc arch.Addr, regs *arch.Regs, rule *arch.Rule) (once, ok bool) {
	if c.Start == 0 || c.Start >= pc {
		return false, false
	}
	if r.arch.LeaveBody != nil && r.arch.LeaveBody(r.mem, pc, rule) {
		return false, true
	}
	return r.OrphanBodyRule(c, pc, regs, rule)
}

// OrphanBodyRule is OrphanRule for those who must know that pc lies in the
// method's body, and not in a funclet: it finds no rule where that is not sure.
func (r *Runtime) OrphanBodyRule(c *Code, pc arch.Addr, regs *arch.Regs, rule *arch.Rule) (once, ok bool) {
	if c.Start == 0 || c.Start >= pc || r.arch.Prologue == nil {
		return false, false
	}
	return r.arch.Prologue(r.mem, c.Start, pc, regs, rule)
}

// orphans leaves orphans. It is to be asked before [Runtime.Source], for which such
// a method is a hole.
type orphans struct{ r *Runtime }

func (s orphans) Unwind(st *unwind.Step) unwind.Outcome {
	// Only from behind a call: where in a prologue or an epilogue a pc
	// stands, the codes would have to say.
	if st.PC.Exact {
		return unwind.NoInfo
	}
	c, missing := s.r.CodeAt(st.PC.Lookup())
	if c.Kind != code.JIT || missing == 0 || c.Body.Lo != 0 {
		return unwind.NoInfo
	}
	var ok bool
	if st.Once, ok = s.r.OrphanRule(&c, st.PC.Addr, &st.Regs, &st.Rule); !ok {
		st.Once = false
		return unwind.NoInfo
	}
	return unwind.UseRule
}

// An orphanIndex has the FixupPrecodes that lead to compiled code: orphans are
// named by them, and ReadyToRun code whose entry the dump's map of entry points
// lacks. It is made once, when the first is to be named.
type orphanIndex struct {
	once    bin.Once
	layout  precodeLayout
	told    []precode // in sections of FixupPrecodes
	guessed []precode // elsewhere near the code
	methods []precode // in sections of FixupPrecodes, by MethodDesc, whatever they lead to

	slotted bin.Once
	slots   map[arch.Addr]arch.Addr // MethodDescs by the code in their slots

	hooks  bin.Once
	hooked bool // see hooksTakeMethods

	mu    sync.Mutex
	named map[arch.Addr]arch.Addr // answers of orphanMethod, as very many precodes may claim one start
}

// A precode is listed by the code that it leads to, or by its MethodDesc.
type precode struct {
	by arch.Addr
	at arch.Addr // of its data
}

func (p precode) compare(by arch.Addr) int { return cmp.Compare(p.by, by) }

// orphanIndex returns the index of this runtime's precodes.
func (r *Runtime) orphanIndex() *orphanIndex {
	x := &r.orphans
	x.once.Do(func() {
		x.told, x.guessed, x.methods = nil, nil, nil // of an attempt that was broken off
		x.named = map[arch.Addr]arch.Addr{}
		var ok bool
		if x.layout, ok = r.precodes(); ok {
			x.fill(r)
		}
	})
	return x
}

// orphanMethod returns the MethodDesc of the method whose code begins at
// start, 0 if no precode leads there, or those of several methods do.
func (r *Runtime) orphanMethod(start arch.Addr) arch.Addr {
	x := r.orphanIndex()
	x.mu.Lock()
	defer x.mu.Unlock()
	md, ok := x.named[start]
	if !ok {
		md = r.searchPrecodes(x, start)
		x.named[start] = md
	}
	return md
}

// searchPrecodes is orphanMethod without a memory.
func (r *Runtime) searchPrecodes(x *orphanIndex, start arch.Addr) arch.Addr {
	if md, found := r.precodeMethod(x.told, start, r.ownsCode); found {
		return md
	}
	// The dump may lack the section that lists the precodes, as it lacks the
	// header. What is found without must be confirmed by the MethodDesc.
	md, found := r.precodeMethod(x.guessed, start, func(md arch.Addr) bool { return r.ownsCode(md) && r.nativeCode(r.mem, md) == start })
	if !found {
		md = r.slotMethod(start)
	}
	if md == 0 {
		md = r.hookedMethod(start)
	}
	return md
}

// precodeMethod returns the one MethodDesc that the precodes of the code at
// start have, of those that are ok; 0 if there are several. All of them are
// read, so that a trim keeps what it has to say the same.
func (r *Runtime) precodeMethod(list []precode, start arch.Addr, ok func(md arch.Addr) bool) (md arch.Addr, found bool) {
	l := &r.orphans.layout
	i, _ := slices.BinarySearchFunc(list, start, precode.compare)
	for ; i < len(list) && list[i].by == start; i++ {
		at := list[i].at
		v, have := r.word(field(at, l.MethodDesc))
		if !have || v == 0 || !ok(arch.Addr(v)) {
			continue
		}
		r.word(field(at, l.Target))
		r.mem.View(at&^(pageSize-1), 1)
		if found && md != arch.Addr(v) {
			return 0, true
		}
		md, found = arch.Addr(v), true
	}
	return md, found
}

// ownsCode reports whether the precode of md leads to code of md's own.
func (r *Runtime) ownsCode(md arch.Addr) bool {
	n := &r.names
	flags3, ok1 := r.u16(field(md, n.MDFlags3))
	flags, ok2 := r.u16(field(md, n.MDFlags))
	if !ok1 || !ok2 { // those that modules define are no instantiations
		_, ok := r.definition(md)
		return ok || r.inLargeChunk(md)
	}
	if flags3&unboxing != 0 {
		return false
	}
	if flags&classMask != classInstantiated {
		return true
	}
	kind, ok := r.u16(field(md, n.InstFlags))
	return ok && kind&instKind != instWrapper
}

// inLargeChunk reports whether another method's MethodDesc lies so close to md
// that they share a chunk. Instantiations of methods have a chunk each
// (InstantiatedMethodDesc::NewInstantiatedMethodDesc, src/coreclr/vm/genmeth.cpp).
func (r *Runtime) inLargeChunk(md arch.Addr) bool {
	n, list := &r.names, r.orphans.methods
	if n.MDSize < 0 || n.ChunkSize < 0 || n.InstCount < 0 {
		return false // nowhere: not known
	}
	before := arch.Addr(n.ChunkSize + n.MDSize)        // to what comes first in its chunk, at least
	behind := arch.Addr(n.ChunkSize + n.InstCount + 2) // from an instantiation to the next, at least
	i, _ := slices.BinarySearchFunc(list, md-before+1, precode.compare)
	for ; i < len(list) && list[i].by < md+behind; i++ {
		if list[i].by != md {
			r.word(field(list[i].at, r.orphans.layout.MethodDesc)) // a trim keeps it
			return true
		}
	}
	return false
}

// Bounds of the index: the precodes that are looked at, those of a million
// methods, with the pages that the dump lacks, and the addresses that are
// searched without knowing of precodes there: a runtime reserves them close to
// each other.
const (
	maxPrecodes    = 1 << 20
	maxPrecodeSpan = 1 << 26
)

// fill finds all precodes of code in a heap of the JIT or a ReadyToRun image.
func (x *orphanIndex) fill(r *Runtime) {
	var told []arch.Span
	var heaps arch.Spans
	all := arch.Span{Lo: ^arch.Addr(0)} // that precodes and code are known to lie in
	r.sections(func(s rangeSection) bool {
		if s.r2r != 0 || s.span.Hi <= s.span.Lo {
			return true
		}
		all.Lo, all.Hi = min(all.Lo, s.span.Lo), max(all.Hi, s.span.Hi)
		if s.flags&rangeCodeHeap != 0 {
			heaps = append(heaps, s.span)
		} else if s.flags&rangeList != 0 && r.stubListKind(s) == code.StubFixupPrecode {
			told = append(told, s.span)
		}
		return true
	})
	slices.SortFunc(heaps, func(a, b arch.Span) int { return cmp.Compare(a.Lo, b.Lo) })
	search := func(spans ...arch.Span) (list, methods []precode) {
		left := maxPrecodes
		for _, s := range spans {
			x.search(r, s, &left, func(target, md, at arch.Addr) {
				methods = append(methods, precode{md, at})
				if heaps.Has(target) || r.inAssembly(target) {
					list = append(list, precode{target, at})
				}
			})
		}
		for _, list := range []*[]precode{&list, &methods} {
			slices.SortFunc(*list, func(a, b precode) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.at, b.at)) })
			*list = slices.Compact(*list)
		}
		return list, methods
	}
	x.told, x.methods = search(told...)
	if all.Lo < all.Hi && all.Hi-all.Lo <= maxPrecodeSpan {
		all.Lo &^= 2*x.layout.page - 1
		x.guessed, _ = search(all)
	}
}

// inAssembly reports whether a lies in an image other than those of native code,
// which may have ReadyToRun code: the dump may lack what says that it has.
func (r *Runtime) inAssembly(a arch.Addr) bool {
	img := r.proc.ImageAt(a)
	return img != nil && img.Format == "pe" && img != r.Image
}

// search yields the precodes in span, pages of precodes each with a page of
// their data behind it. Of a search through hundreds of pages, a trim keeps what
// counts in the end: see precodeMethod.
func (x *orphanIndex) search(r *Runtime, span arch.Span, left *int, yield func(target, md, at arch.Addr)) {
	l, mem := &x.layout, r.mem.Untracked()
	for page := span.Lo + l.page; page > span.Lo && page < span.Hi && *left > 0; page += 2 * l.page {
		for at := page; at+l.size <= page+l.page && *left > 0; at += l.size {
			*left--
			if mem.View(at&^(pageSize-1), 1) == nil {
				at += (pageSize - at%pageSize) / l.size * l.size // the rest of a page that the dump lacks
				continue
			}
			target, ok1 := mem.Word(field(at, l.Target))
			md, ok2 := mem.Word(field(at, l.MethodDesc))
			if ok1 && ok2 && md != 0 {
				yield(arch.Addr(target), arch.Addr(md), at)
			}
		}
	}
}

// precodeLayout is how FixupPrecodes lie (docs/design/datacontracts/PrecodeStubs.md).
type precodeLayout struct {
	PageSize   int `c:"PrecodeMachineDescriptor.StubCodePageSize,optional"`
	Size       int `c:"PrecodeMachineDescriptor.FixupStubPrecodeSize,optional"`
	Target     int `c:"FixupPrecodeData.Target"`
	MethodDesc int `c:"FixupPrecodeData.MethodDesc"`

	page, size arch.Addr
}

// precodes reads the layout of precodes; ok is false if neither this runtime nor the
// row of its release tells, or what it tells cannot be.
func (r *Runtime) precodes() (l precodeLayout, ok bool) {
	if r.data.fill(&l) != nil {
		return l, false
	}
	var ok1, ok2 bool
	if machine, ok := r.data.pointer("PlatformMetadata"); ok && l.PageSize >= 0 && l.Size >= 0 {
		var page uint32
		var size uint8
		page, ok1 = r.u32(field(machine, l.PageSize))
		size, ok2 = r.u8(field(machine, l.Size))
		l.page, l.size = arch.Addr(page), arch.Addr(size)
	} else {
		var page, size uint64
		page, ok1 = r.data.global("StubCodePageSize")
		size, ok2 = r.data.global("FixupStubPrecodeSize")
		l.page, l.size = arch.Addr(page), arch.Addr(size)
	}
	return l, ok1 && ok2 && l.page >= pageSize && l.page <= 1<<20 && l.page%pageSize == 0 && l.size >= 16
}
