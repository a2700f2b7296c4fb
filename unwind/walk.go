package unwind

import "github.com/seamwalk/seam/arch"

// A Frame is one physical frame.
type Frame struct {
	PC arch.PC
	SP arch.Addr // 0: not known, as behind a saved frame pointer on ARM64
	By By        // how the frame was found; 0 is the thread's own context
}

// A Hijack is a return address on the stack that was replaced by the address of
// other code, which gets control when the function returns: CoreCLR suspends threads
// like that. The word at Slot is what replaced it; the function's own return address
// is Return. A step that reads its return address from Slot goes on at Return, with
// SP as the caller's stack pointer, or with the one that the step found if SP is 0.
type Hijack struct {
	Slot, Return, SP arch.Addr
}

// cacheSize is a power of two. A stack of a server has some hundred different
// return addresses; an entry has 136 bytes.
const (
	cacheBits = 10
	cacheSize = 1 << cacheBits
)

// cached is what a source said of a pc: UseRule and the rule, or Final. It has
// no pointers and no reference to memory contents: it is a fact about code.
type cached struct {
	pc   arch.PC
	out  Outcome // NoInfo: the entry is empty
	by   By
	rule arch.Rule
}

// maxSwitches bounds how often a walk may go down to another stack through
// signal frames. Handlers nest a few deep; a forged stack could go round.
const maxSwitches = 64

// A Walker walks one stack at a time. It is not safe for concurrent use.
type Walker struct {
	u        *Unwinder
	step     Step
	frame    Frame
	entry    *cached   // where in cache the frame's answer lies
	low      arch.Addr // the frame's stack pointer is not below this
	stop     Stop
	hijacks  []Hijack
	hijacked bool // the last step's return address was a hijacked one
	n        int  // frames so far
	switches int
	caller   arch.Caller // what apply has found, here because it is large
	cache    [cacheSize]cached
	pages    [256]arch.Addr // numbers of pages that hold code, by their lowest byte
}

// NewWalker returns a walker over u's process. Use one for each goroutine.
func (u *Unwinder) NewWalker() *Walker {
	w := &Walker{u: u}
	w.step.Mem, w.step.Arch = u.mem, u.arch
	w.entry = w.entryOf(0)
	return w
}

// Start begins a walk at the frame whose registers are regs. exact says that the pc
// in regs is about to run, as it is in a thread that was interrupted; otherwise it is
// a return address. hijacks are the return addresses that were replaced on this
// stack; the slice is used until the next Start. Start reports false, and Stop says
// why, if regs lack the pc or the stack pointer.
func (w *Walker) Start(regs *arch.Regs, exact bool, hijacks []Hijack) bool {
	w.n, w.switches, w.hijacks = 0, 0, hijacks
	if _, ok := regs.Get(w.u.arch.SP); !ok {
		w.stop, w.frame = Stop{}, Frame{}
		return w.end(NotStarted, 0, ByContext)
	}
	return w.Resume(regs, 0, exact, ByContext)
}

// Resume goes on at a frame that was not found by this walker: after the walk has
// ended, or in the middle of it. by says how the frame was found, and exact is as in
// Start. The limit on frames goes on counting. Where regs lack the stack pointer, low
// is the lowest address that it can be.
func (w *Walker) Resume(regs *arch.Regs, low arch.Addr, exact bool, by By) bool {
	s, a := &w.step, w.u.arch
	w.stop, w.frame, w.hijacked = Stop{}, Frame{By: by}, false
	pc, ok := regs.Get(a.PC)
	if !ok {
		return w.end(NotStarted, 0, ByContext)
	}
	sp, ok := regs.Get(a.SP)
	if w.low = low; ok {
		w.low = arch.Addr(sp)
	}
	if w.n >= w.u.max {
		return w.end(FrameLimit, 0, ByContext)
	}
	w.n++
	s.Regs = *regs
	s.Holes = [arch.MaxRegs]arch.Addr{}
	s.PC = arch.PC{Addr: arch.Addr(pc), Exact: exact}
	w.entry = w.entryOf(s.PC.Addr)
	w.frame = Frame{PC: s.PC, SP: arch.Addr(sp), By: by}
	return true
}

// Amend replaces the registers of the frame that the walk is at, the pc and the stack
// pointer included, by better ones than the unwind information gave: by those of a
// runtime's explicit Frame, for example. regs must have the pc and the stack pointer;
// exact is as in Start.
func (w *Walker) Amend(regs *arch.Regs, exact bool) {
	s, a := &w.step, w.u.arch
	pc, _ := regs.Get(a.PC)
	sp, _ := regs.Get(a.SP)
	s.Regs = *regs
	s.Holes = [arch.MaxRegs]arch.Addr{}
	s.PC = arch.PC{Addr: arch.Addr(pc), Exact: exact}
	w.entry = w.entryOf(s.PC.Addr)
	w.frame.PC, w.frame.SP, w.low = s.PC, arch.Addr(sp), arch.Addr(sp)
}

// Frame returns the frame the walk is at.
func (w *Walker) Frame() Frame { return w.frame }

// Exact reports whether the frame's pc is about to run.
func (w *Walker) Exact() bool { return w.step.PC.Exact }

// Low returns the lowest address that the frame's stack pointer can be; it is
// the stack pointer itself where that is known.
func (w *Walker) Low() arch.Addr { return w.low }

// Hijacked reports whether the frame was found by a return address that stood
// in the list of hijacks, and not on the stack.
func (w *Walker) Hijacked() bool { return w.hijacked }

// Regs returns the registers of that frame; they change with Next.
func (w *Walker) Regs() *arch.Regs { return &w.step.Regs }

// Hole returns the address of the word that the dump lacks to say what register r
// holds in the frame that the walk is at; 0 if that is known, or no word says it.
func (w *Walker) Hole(r arch.Reg) arch.Addr {
	if _, known := w.step.Regs.Get(r); known {
		return 0
	}
	return w.step.Holes[r]
}

// Stop says why Next returned false.
func (w *Walker) Stop() Stop { return w.stop }

func (w *Walker) end(r Reason, at arch.Addr, by By) bool {
	w.stop = Stop{Reason: r, PC: w.frame.PC.Addr, At: at, By: by}
	return false
}

// Next moves to the caller, or ends the walk.
func (w *Walker) Next() bool {
	if w.n >= w.u.max {
		return w.end(FrameLimit, 0, ByContext)
	}
	s := &w.step
	c := w.entry
	if c.knows(s.PC) {
		if c.out == Final {
			return w.end(outermost(c.by), 0, c.by)
		}
		return w.apply(&c.rule, c.by)
	}
	by, out := w.u.find(s)
	switch out {
	case UseRule:
		if !s.Once {
			*c = cached{s.PC, UseRule, by, s.Rule}
		}
		return w.apply(&s.Rule, by)
	case Stepped:
		return w.stepped(by)
	case Final:
		*c = cached{pc: s.PC, out: Final, by: by}
		return w.end(outermost(by), 0, by)
	}
	// NoInfo and Broken have said why.
	return w.end(s.Why.Reason, s.Why.At, by)
}

// apply leaves the frame by r. It computes first, and changes the registers
// only once the caller is known to be one.
func (w *Walker) apply(r *arch.Rule, by By) bool {
	s, a, c := &w.step, w.u.arch, &w.caller
	if lacks, ok := r.Find(a, &s.Regs, s.Mem, c); !ok {
		return w.unknown(lacks, by)
	}
	if c.Holes != 0 {
		if at := w.vital(r); at != 0 {
			return w.end(MemoryMissing, at, by)
		}
	}
	if c.RAAt == 0 && r.RA == arch.NoReg {
		return w.end(BadInfo, s.PC.Addr, by)
	}
	if !w.commit(c.PC, c.SP, c.RAAt, r.Signal, !r.NoSP, by) {
		return false
	}
	s.Regs.Keep(w.u.saved)
	for i := range r.Saved[:r.N] {
		reg := r.Saved[i].Reg
		if c.Holes>>i&1 == 0 {
			s.Regs.Set(reg, c.Vals[i])
		} else {
			// The walk goes on without this register, until a frame
			// needs it.
			s.Regs.Forget(reg)
			s.Holes[reg] = c.At(r, i)
		}
	}
	s.Regs.Set(a.PC, uint64(w.frame.PC.Addr))
	s.Regs.Set(a.SP, uint64(w.low))
	if r.NoSP {
		s.Regs.Forget(a.SP)
		s.Holes[a.SP] = 0
	}
	return true
}

// vital returns the address of the first missing word of the caller without which
// the walk cannot go on: that of the stack pointer, or that of the return address if
// it is not a hijacked one, which is known without the word. It returns 0 if all
// that is missing are other registers.
func (w *Walker) vital(r *arch.Rule) arch.Addr {
	a := w.u.arch
	for i := range r.Saved[:r.N] {
		if w.caller.Holes>>i&1 == 0 {
			continue
		}
		at := w.caller.At(r, i)
		if reg := r.Saved[i].Reg; reg == a.SP || reg == a.PC && w.hijackAt(at) == nil {
			return at
		}
	}
	return 0
}

// stepped moves to the caller whose registers are in Out.
func (w *Walker) stepped(by By) bool {
	s, a := &w.step, w.u.arch
	pc, ok := s.Out.Get(a.PC)
	sp, ok2 := s.Out.Get(a.SP)
	if !ok || !ok2 {
		return w.end(BadInfo, s.PC.Addr, by)
	}
	if !w.commit(pc, sp, s.RAAt, s.Exact, true, by) {
		return false
	}
	s.Regs = s.Out
	s.Regs.Set(a.PC, uint64(w.frame.PC.Addr))
	s.Regs.Set(a.SP, uint64(w.low))
	return true
}

func (w *Walker) unknown(r arch.Reg, by By) bool {
	w.step.unknown(r)
	return w.end(w.step.Why.Reason, w.step.Why.At, by)
}

// hijackAt returns the hijack of the return address at slot, or nil.
func (w *Walker) hijackAt(slot arch.Addr) *Hijack {
	for i := range w.hijacks {
		if w.hijacks[i].Slot == slot {
			return &w.hijacks[i]
		}
	}
	return nil
}

// commit makes the frame with pc and sp the current one, if it can be the
// caller of the one before. raAt is where pc was read, 0 for a register; known
// is false where sp is only the lowest that the stack pointer can be.
func (w *Walker) commit(pc, sp uint64, raAt arch.Addr, exact, known bool, by By) bool {
	s, a := &w.step, w.u.arch
	h := w.hijackAt(raAt)
	if w.hijacked = h != nil && raAt != 0; w.hijacked {
		if w.u.back != nil && pc != 0 {
			// What it reads tells that this is no return address, where the
			// hijack is not known: a dump trimmed to what was read keeps it.
			w.u.back(arch.PC{Addr: a.Strip(arch.Addr(pc))})
		}
		pc = uint64(h.Return)
		if h.SP != 0 {
			sp = uint64(h.SP)
		}
	} else if a.LR == arch.NoReg && raAt != 0 && uint64(raAt)+uint64(a.Word) != sp {
		// A call leaves the return address right below the caller's stack
		// pointer. Where information says that it lies elsewhere, nothing
		// called: CoreCLR's fault handler runs on the stack of the code that
		// faulted, below its red zone, as if called by the faulting
		// instruction (CallSignalHandlerWrapper, src/coreclr/pal/src/arch/
		// */callsignalhandlerwrapper.S), which may be the first of its function.
		exact = true
	}
	to := arch.PC{Addr: a.Strip(arch.Addr(pc)), Exact: exact}
	if to.Addr == 0 && !exact { // exact: it was interrupted there, having called a null pointer
		return w.end(ZeroReturn, raAt, by)
	}
	c := w.entryOf(to.Addr)
	if !exact && !c.knows(to) {
		if w.u.code != nil && !w.code(to) || by == ByCodes && !w.hijacked && w.u.back != nil && !w.u.back(to) {
			return w.end(BadReturnAddress, raAt, by)
		}
	}
	// The stack pointer rises from callee to caller. It may stay where it is
	// only when leaving a leaf that never touched it, where a call leaves the
	// return address in a register. Behind a signal frame it may be on another
	// stack, which may lie lower.
	switch at := arch.Addr(sp); {
	case at > w.low:
	case at == w.low && w.frame.SP != 0 && s.PC.Exact && raAt == 0 && to.Addr != s.PC.Addr:
	case exact && w.switches < maxSwitches && at != w.low:
		w.switches++
	default:
		return w.end(NoProgress, at, by)
	}
	w.n++
	s.PC, w.entry = to, c
	w.low = arch.Addr(sp)
	if w.frame = (Frame{PC: to, SP: w.low, By: by}); !known {
		w.frame.SP = 0
	}
	return true
}

// code reports whether the return address pc, which the cache does not know, can
// lie in code. That another one on the page does says so: nearly every return
// address of a walk has been met like that.
func (w *Walker) code(pc arch.PC) bool {
	page := pc.Addr / pageSize
	known := &w.pages[page%arch.Addr(len(w.pages))]
	if *known == page && page != 0 {
		return true
	}
	if !w.u.code(pc) {
		return false
	}
	if pc.Addr%pageSize != 0 { // else it may be what lies before that is code
		*known = page
	}
	return true
}

// pageSize is the smallest size of a page: one is executable as a whole.
const pageSize = 4096

// entryOf returns where in the cache the answer for pc lies.
func (w *Walker) entryOf(pc arch.Addr) *cached {
	return &w.cache[uint64(pc)*0x9e3779b97f4a7c15>>(64-cacheBits)]
}

// knows reports whether c is the answer for pc.
func (c *cached) knows(pc arch.PC) bool { return c.out != NoInfo && c.pc == pc }

// Walk appends the frames of the stack that starts at regs, those of an
// interrupted thread, to dst, leaf first. It knows of no hijacks: see Start.
func (w *Walker) Walk(dst []Frame, regs *arch.Regs) ([]Frame, Stop) {
	if !w.Start(regs, true, nil) {
		return dst, w.stop
	}
	dst = append(dst, w.frame)
	for w.Next() {
		dst = append(dst, w.frame)
	}
	return dst, w.stop
}
