package clr

import (
	"sync"

	"github.com/seamwalk/seam/arch"
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

// Orphans returns what leaves orphans. It is to be asked before
// [Runtime.Source], for which such a method is a hole.
func (r *Runtime) Orphans() unwind.Source { return orphans{r} }

type orphans struct{ r *Runtime }

func (s orphans) Unwind(st *unwind.Step) unwind.Outcome {
	// Only from behind a call: where in a prologue or an epilogue a pc
	// stands, the codes would have to say.
	if st.PC.Exact {
		return unwind.NoInfo
	}
	c, missing := s.r.Lookup(st.PC.Lookup())
	if c.Kind != JIT || missing == 0 || c.Body.Lo != 0 {
		return unwind.NoInfo
	}
	var ok bool
	if st.Once, ok = s.r.OrphanRule(&c, st.PC.Addr, &st.Regs, &st.Rule); !ok {
		st.Once = false
		return unwind.NoInfo
	}
	return unwind.UseRule
}

// An orphanIndex is what orphans are named by, and which methods were found
// so: to find one may mean to look through all precodes.
type orphanIndex struct {
	once        sync.Once
	precode     precodeLayout
	hasPrecodes bool
	mu          sync.Mutex
	method      map[arch.Addr]arch.Addr // by the start of its code
}

// orphanMethod returns the MethodDesc of the method whose code begins at
// start, 0 if no precode leads there.
func (r *Runtime) orphanMethod(start arch.Addr) arch.Addr {
	x := &r.orphans
	x.once.Do(func() {
		x.precode, x.hasPrecodes = r.precodes()
		x.method = map[arch.Addr]arch.Addr{}
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	md, ok := x.method[start]
	if !ok {
		md = r.searchPrecodes(start)
		x.method[start] = md
	}
	return md
}

// maxPrecodes bounds the precodes that are looked through for one method: those
// of a million methods.
const maxPrecodes = 1 << 20

// searchPrecodes finds the method whose code begins at start, by the FixupPrecode
// that jumps there: its data are the code's address and the MethodDesc. It
// reports 0 if none does.
func (r *Runtime) searchPrecodes(start arch.Addr) (md arch.Addr) {
	if !r.orphans.hasPrecodes || start == 0 {
		return 0
	}
	left := maxPrecodes
	all := arch.Span{Lo: ^arch.Addr(0)} // that precodes and code are known to lie in
	r.sections(func(s rangeSection) bool {
		if s.r2r != 0 {
			return true
		}
		all.Lo, all.Hi = min(all.Lo, s.span.Lo), max(all.Hi, s.span.Hi)
		if kind, ok := r.u32(s.list + stubListKind); s.flags&rangeList != 0 && ok && stubBlock(uint64(kind)) == StubFixupPrecode {
			md = r.precodesOf(s.span, start, &left, func(arch.Addr) bool { return true })
		}
		return md == 0 && left > 0
	})
	if md != 0 || all.Hi-all.Lo > maxPrecodeSpan {
		return md
	}
	// The dump may lack the section that tells of the precodes, as it lacks the
	// header. What is found without must be confirmed by the MethodDesc.
	all.Lo &^= 2*r.orphans.precode.page - 1
	return r.precodesOf(all, start, &left, func(md arch.Addr) bool { return r.nativeCode(md) == start })
}

// maxPrecodeSpan bounds the addresses that are searched without knowing of
// precodes there. A runtime reserves them close to each other.
const maxPrecodeSpan = 1 << 26

// precodesOf looks in span, pages of precodes each with a page of their data
// behind it, for the precode of the code at start.
func (r *Runtime) precodesOf(span arch.Span, start arch.Addr, left *int, ok func(md arch.Addr) bool) arch.Addr {
	l := &r.orphans.precode
	all := r.mem.Untracked() // of a search through hundreds of pages, a trim keeps what it found
	for page := span.Lo + l.page; page < span.Hi; page += 2 * l.page {
		for at := page; at+l.size <= page+l.page && *left > 0; at += l.size {
			if all.View(at&^(pageSize-1), 1) == nil {
				at += (pageSize - at%pageSize) / l.size * l.size // the rest of a page that the dump lacks
				continue
			}
			*left--
			if target, have := all.Word(field(at, l.Target)); !have || arch.Addr(target) != start {
				continue
			}
			if v, have := r.word(field(at, l.MethodDesc)); have && v != 0 && ok(arch.Addr(v)) {
				r.word(field(at, l.Target))
				r.mem.View(at&^(pageSize-1), 1)
				return arch.Addr(v)
			}
		}
	}
	return 0
}

// Optional slots behind a MethodDesc, in this order, by the flags that tell of
// them (src/coreclr/vm/method.hpp, mdfHasNonVtableSlot and its neighbours).
const (
	methodNonVtableSlot  = 0x08
	methodImpl           = 0x10
	methodNativeCodeSlot = 0x20
)

// nativeCode returns the code of an ordinary method that has a slot for it, else 0.
func (r *Runtime) nativeCode(md arch.Addr) arch.Addr {
	flags, ok := r.u16(field(md, r.names.MDFlags))
	if !ok || flags&methodClassMask != 0 || flags&methodNativeCodeSlot == 0 {
		return 0
	}
	at := field(md, r.names.MDSize)
	if flags&methodNonVtableSlot != 0 {
		at += 8
	}
	if flags&methodImpl != 0 {
		at += 16 // two pointers: the slots that it implements, and the methods
	}
	v, _ := r.word(at)
	return arch.Addr(v)
}

// precodeLayout is how FixupPrecodes lie (docs/design/datacontracts/PrecodeStubs.md).
type precodeLayout struct {
	PageSize   int `c:"PrecodeMachineDescriptor.StubCodePageSize"`
	Size       int `c:"PrecodeMachineDescriptor.FixupStubPrecodeSize"`
	Target     int `c:"FixupPrecodeData.Target,0"`
	MethodDesc int `c:"FixupPrecodeData.MethodDesc"`

	page, size arch.Addr
}

// precodes reads the layout of precodes; ok is false if this runtime does not
// tell, or what it tells cannot be.
func (r *Runtime) precodes() (l precodeLayout, ok bool) {
	if r.data.fill(&l) != nil {
		return l, false
	}
	machine, ok := r.data.pointer("PlatformMetadata")
	if !ok {
		return l, false
	}
	page, ok1 := r.u32(field(machine, l.PageSize))
	size, ok2 := r.u8(field(machine, l.Size))
	l.page, l.size = arch.Addr(page), arch.Addr(size)
	return l, ok1 && ok2 && l.page >= pageSize && l.page <= 1<<20 && l.page%pageSize == 0 && l.size >= 16
}
