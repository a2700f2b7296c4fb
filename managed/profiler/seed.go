package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A Seed is the context that an asynchronous walk of a thread is to start from:
// the registers of its topmost managed frame.
type Seed struct {
	Regs    arch.Regs
	PC, SP  arch.Addr
	Code    code.Code
	Context []byte // a CONTEXT with these registers, of the size that every build has
}

// A SeedSearch is how the seed of a thread was looked for, and what for.
type SeedSearch struct {
	// Needed: the runtime looks at a seed, because the thread is in cooperative
	// mode. Otherwise it ignores any. NeedKnown is false where the dump lacks
	// the thread's Thread object.
	Needed, NeedKnown bool
	Native            []managed.Frame // from the leaf to the frame that managed code called
	Seed              *Seed           // nil if there is no managed frame
	// Documented is what a profiler finds that is written to the documentation:
	// it unwinds natively, and asks GetFunctionFromIP of each frame. It passes over
	// IL stubs and dynamic methods, which GetFunctionFromIP does not know. nil: it
	// finds none. DocumentedKnown is false where the dump lacks what a profiler
	// would have read.
	Documented      *Seed
	DocumentedKnown bool
	Stop            unwind.Stop // why the search ended, if Seed is nil

	documenting bool // the documented search is still on its way
}

// SameAsDocumented reports whether the documented search finds the same seed.
func (s *SeedSearch) SameAsDocumented() bool {
	if s.Seed == nil || s.Documented == nil {
		return s.Seed == nil && s.Documented == nil
	}
	return s.Seed.PC == s.Documented.PC && s.Seed.SP == s.Documented.SP
}

// FindSeed walks t natively from its own context up to the first pc that counts
// as managed code of n's runtime. t is a thread of the dump. A frame that cannot be
// left natively ends the search: a managed frame may be its caller. The newest explicit Frame does not say where the topmost
// managed frame is, not even in preemptive mode: helpers of the JIT wait for a
// collection without a Frame.
func (n *Snapshotter) FindSeed(t *loader.Thread) (s SeedSearch) {
	if t == nil {
		return SeedSearch{Stop: unwind.Stop{Reason: unwind.NotStarted}}
	}
	if err := n.guardRetry(func() { s = n.findSeed(t) }); err != nil {
		n.lost(err)
		return SeedSearch{Stop: unwind.Stop{Reason: unwind.FileLost}}
	}
	return s
}

func (n *Snapshotter) findSeed(t *loader.Thread) SeedSearch {
	m, rt := n.s.Thread(t.ID)
	s := SeedSearch{
		Needed:    m != nil && rt == n.rt && m.Cooperative,
		NeedKnown: m != nil || n.cut == "",
	}
	w := n.seedWalker()
	if !w.Start(t) {
		s.Stop = w.Stop()
		return s
	}
	s.documenting, s.DocumentedKnown = true, true
	for {
		f := w.Frame()
		c := n.lookup(f.PC.Addr) // the exact pc, as the runtime does
		if at := n.unknown(c); at != 0 {
			s.stop(unwind.Stop{Reason: unwind.InfoMissing, PC: f.PC.Addr, At: at, By: unwind.ByCodes})
			return s
		}
		if c.managed() {
			n.found(&s, w.Regs(), &c.shownCode)
		} else if s.Seed == nil {
			s.Native = append(s.Native, *f)
			s.Native[len(s.Native)-1].Kind = managed.Native
		}
		if s.documenting {
			s.documenting, s.DocumentedKnown = n.documentedStep(w)
		}
		if s.Seed != nil && !s.documenting {
			return s
		}
		if !w.Leave() {
			s.stop(w.Stop())
			return s
		}
		if w.Hijacked() {
			s.documenting = false // a profiler's unwinder knows of no hijacks
		}
	}
}

// stop ends a search that has come to no managed frame, or to none that the
// documented search would take. If bytes are missing, whoever has them may find what
// the documented search was still looking for.
func (s *SeedSearch) stop(why unwind.Stop) {
	s.Stop = why
	if s.documenting && !why.Reason.Complete() {
		s.DocumentedKnown = false
	}
}

// found notes a managed frame. The first one is the seed; the documented search
// takes the first one that GetFunctionFromIP knows.
func (n *Snapshotter) found(s *SeedSearch, regs *arch.Regs, c *shownCode) {
	if s.Seed == nil {
		s.Seed = n.seed(regs, c.code.Code)
	}
	switch {
	case !s.documenting:
	case c.hidden != 0:
		s.documenting, s.DocumentedKnown = false, false
	case c.visibility == clr.Visible:
		s.documenting, s.Documented = false, n.seed(regs, c.code.Code)
	}
}

// seedWalker returns the walker that native frames are walked with.
func (n *Snapshotter) seedWalker() *managed.Walker {
	if n.walker == nil {
		n.walker = n.s.NewWalker()
	}
	return n.walker
}

// documentedStep reports whether a profiler's own unwinder leaves the frame that w
// is at as we do. It may not if the frame is a stub's, which has no unwind
// information: it then takes the word at the stack pointer for the return address,
// and some stubs have pushed something before they call. known is false where the
// dump lacks that word, or what lies where it points.
func (n *Snapshotter) documentedStep(w *managed.Walker) (same, known bool) {
	f := w.Frame()
	if c := n.lookup(f.PC.Addr); c.code.Kind != code.Stub {
		return true, true
	}
	v, ok := n.mem.Word(f.SP)
	if !ok {
		return false, false
	}
	c := n.lookup(arch.Addr(v))
	return c.managed(), n.unknown(c) == 0
}

// seed makes a seed of a frame's registers.
func (n *Snapshotter) seed(regs *arch.Regs, c code.Code) *Seed {
	s := &Seed{Regs: *regs, PC: n.pcOf(regs), SP: n.spOf(regs), Code: c}
	s.Context = make([]byte, n.ctx.l.Base)
	n.ctx.write(s.Context, regs, n.ctx.l.Whole)
	return s
}
