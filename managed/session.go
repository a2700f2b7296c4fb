package managed

import (
	"cmp"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// Options change how stacks are walked. The zero value is fine.
type Options struct {
	MaxFrames int // of one stack; 0: 1,000,000
	// Runtimes are kinds of runtimes besides those that Seam reads by itself.
	// They are not asked about code that Seam's own runtimes know.
	Runtimes []code.Finder
}

const defaultMaxFrames = 1_000_000

// A Session is a process ready to be walked. It is read-only, and safe for
// concurrent use.
type Session struct {
	Process  *loader.Process
	Runtimes []code.Runtime
	Warnings []loader.Warning // what lacked in reading the runtimes

	unwinder *unwind.Unwinder
	threads  map[uint32]managedThread // by the TID that the dump has
	methods  methodTable
	max      int
}

// A managedThread is a Thread object and the runtime it belongs to.
type managedThread struct {
	thread *code.Thread
	rt     code.Runtime
}

// Open finds the runtimes in p and prepares its walks. A process without one,
// or with one that cannot be read, is walked natively; Warnings says so.
func Open(p *loader.Process, opt *Options) *Session {
	if opt == nil {
		opt = &Options{}
	}
	s := &Session{Process: p, max: opt.MaxFrames}
	if s.max <= 0 {
		s.max = defaultMaxFrames
	}
	finders := append(slices.Clip(runtimes), opt.Runtimes...)
	if err := p.GuardRetry(func() { s.read(finders) }); err != nil {
		s.Runtimes, s.threads = nil, nil
		s.Warnings = []loader.Warning{{Code: "file_lost", Off: -1, Text: err.Error()}}
	}
	uopt := unwind.Options{MaxFrames: s.max, Code: s.code, Returns: s.returns, Executable: p.Executable, Entries: p.Entries}
	for _, rt := range s.Runtimes {
		if u, ok := rt.(code.Unwinding); ok {
			uopt.Sources = append(uopt.Sources, u.Sources()...)
		}
	}
	images := make([]unwind.Image, len(p.Images))
	for i, img := range p.Images {
		images[i] = img
	}
	s.unwinder = unwind.New(p.ABI, p.Memory, images, &uopt)
	return s
}

// read finds the runtimes and their threads.
func (s *Session) read(finders []code.Finder) {
	s.threads, s.Runtimes, s.Warnings = map[uint32]managedThread{}, nil, nil
	for _, find := range finders {
		rts, warns := find(s.Process)
		s.Runtimes, s.Warnings = append(s.Runtimes, rts...), append(s.Warnings, warns...)
	}
	for _, rt := range s.Runtimes {
		if known, ok := rt.(code.Threading); ok {
			threads, warns := known.Threads()
			s.Warnings = append(s.Warnings, warns...)
			s.match(rt, threads)
		}
	}
}

// match finds the dump's thread of each Thread object: the one of its TID, or,
// because a core written from outside of a container has other TIDs than the
// runtime saw in it, the one whose stack pointer lies on its stack. An OS thread
// of which the runtime has two objects, of an older thread with the same TID as
// well, is the one whose stack it stands on.
func (s *Session) match(rt code.Runtime, ts []code.Thread) {
	known := make(map[uint32]*loader.Thread, len(s.Process.Threads))
	for i := range s.Process.Threads {
		known[s.Process.Threads[i].ID] = &s.Process.Threads[i]
	}
	stands := func(d *loader.Thread, t *code.Thread) bool {
		on, _ := t.OnStack(s.sp(d))
		return on
	}
	for i := range ts {
		t := &ts[i]
		tid := uint32(t.OSID)
		d := known[tid]
		if t.OSID == 0 || d == nil || t.Detached || t.Dead && !stands(d, t) {
			continue
		}
		m := s.threads[tid].thread
		if m == nil || m.Dead && !t.Dead || !stands(d, m) && stands(d, t) && !t.Dead {
			s.threads[tid] = managedThread{t, rt}
		}
	}
	var bySP []*loader.Thread // sorted once it is needed
	for i := range ts {
		t := &ts[i]
		if t.OSID == 0 || t.Detached || t.Dead || known[uint32(t.OSID)] != nil {
			continue
		}
		if bySP == nil {
			bySP = s.threadsBySP()
		}
		k, _ := slices.BinarySearchFunc(bySP, t.StackLimit, func(d *loader.Thread, a arch.Addr) int { return cmp.Compare(s.sp(d), a) })
		for n := 0; n < maxOnStack && k < len(bySP) && stands(bySP[k], t); n, k = n+1, k+1 {
			if _, taken := s.threads[bySP[k].ID]; !taken {
				s.threads[bySP[k].ID] = managedThread{t, rt}
				break
			}
		}
	}
}

// maxOnStack bounds the threads of the dump that are looked at for one stack. Of a
// sound dump one thread stands on a stack.
const maxOnStack = 64

// sp returns the stack pointer of d, 0 where it is not known.
func (s *Session) sp(d *loader.Thread) arch.Addr {
	v, _ := d.Regs.Get(s.Process.Arch.SP)
	return arch.Addr(v)
}

// threadsBySP returns the dump's threads, sorted by their stack pointers.
func (s *Session) threadsBySP() []*loader.Thread {
	out := make([]*loader.Thread, len(s.Process.Threads))
	for i := range out {
		out[i] = &s.Process.Threads[i]
	}
	slices.SortStableFunc(out, func(x, y *loader.Thread) int { return cmp.Compare(s.sp(x), s.sp(y)) })
	return out
}

// code reports whether the return address pc can lie in code: in code that a
// runtime knows, in memory that the process could run, in an image where the
// dump does not say which that is, or elsewhere behind a call: code that a runtime
// made which is not read. An interrupted function may return to the first byte of
// a signal trampoline, so what lies right before pc counts as well as pc itself.
func (s *Session) code(pc arch.PC) bool {
	is, known := s.codeAt(pc.Lookup())
	if !is && !pc.Exact {
		is, _ = s.codeAt(pc.Addr)
	}
	if is && !pc.Exact {
		// Stubs of a runtime go on to other code and do not call it: a word that
		// leads into one is no return address unless it is seen to lie behind a call.
		c, _ := s.Lookup(pc.Lookup())
		return c.Kind != code.Stub || s.afterCall(pc.Addr)
	}
	return is || !known && s.afterCall(pc.Addr)
}

// returns reports whether managed code can return to pc: to other managed code, and
// to native code behind a call. CoreCLR suspends a thread by a return address that
// leads to the first byte of a stub of its own, which no call lies in front of; the
// true one is in its Thread, which the dump may lack. Code that is missing rules
// out nothing.
func (s *Session) returns(pc arch.PC) bool {
	c, _ := s.Lookup(pc.Lookup())
	return c.Kind != code.NotManaged || s.Process.Arch.AfterCall(s.Process.Memory, pc.Addr)
}

// afterCall reports whether a lies behind a call; not so where the code before it
// is not at hand.
func (s *Session) afterCall(a arch.Addr) bool {
	mem := s.Process.Memory
	return mem.View(a-longestCall, longestCall) != nil && s.Process.Arch.AfterCall(mem, a)
}

// longestCall is the length of the longest call instruction, in bytes.
const longestCall = 8

// codeAt reports whether a lies in code; known is false where nothing tells.
func (s *Session) codeAt(a arch.Addr) (is, known bool) {
	exec, known := s.Process.Executable(a)
	if exec {
		return true, true // this is asked first because it is the quickest
	}
	for _, rt := range s.Runtimes {
		if c, _ := rt.Lookup(a); c.Kind != code.NotManaged {
			return true, true
		}
	}
	if s.Process.ImageAt(a) != nil {
		return !known, true
	}
	return false, known
}

// Thread returns the managed Thread of an OS thread and its runtime, or nil.
func (s *Session) Thread(tid uint32) (*code.Thread, code.Runtime) {
	m := s.threads[tid]
	return m.thread, m.rt
}

// Lookup says which managed code or stub holds a, and of which runtime; nil if
// none does.
func (s *Session) Lookup(a arch.Addr) (code.Code, code.Runtime) {
	for _, rt := range s.Runtimes {
		if c, _ := rt.Lookup(a); c.Kind != code.NotManaged {
			return c, rt
		}
	}
	return code.Code{}, nil
}
