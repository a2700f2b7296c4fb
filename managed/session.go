package managed

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// Options change how stacks are walked. The zero value is fine.
type Options struct {
	MaxFrames int // of one stack; 0: 1,000,000
}

const defaultMaxFrames = 1_000_000

// A Session is a process ready to be walked. It is read-only, and safe for
// concurrent use.
type Session struct {
	Process  *loader.Process
	Runtimes []*clr.Runtime
	Warnings []loader.Warning // what lacked in reading the runtimes

	unwinder *unwind.Unwinder
	threads  map[uint32]managedThread // by the TID that the dump has
	max      int
}

// A managedThread is a Thread object and the runtime it belongs to.
type managedThread struct {
	thread *clr.Thread
	rt     *clr.Runtime
}

// Open finds the runtimes in p and prepares its walks. A process without one,
// or with one that cannot be read, is walked natively; Warnings says so.
func Open(p *loader.Process, opt *Options) *Session {
	s := &Session{Process: p, max: defaultMaxFrames}
	if opt != nil && opt.MaxFrames > 0 {
		s.max = opt.MaxFrames
	}
	if err := p.GuardRetry(s.read); err != nil {
		s.Runtimes, s.threads = nil, nil
		s.Warnings = []loader.Warning{{Code: "file_lost", Off: -1, Text: err.Error()}}
	}
	uopt := unwind.Options{MaxFrames: s.max, Executable: p.Executable, Entries: p.Entries}
	if p.OS == "windows" {
		uopt.CalleeSaved = p.Arch.CalleeSavedWin
	}
	for _, rt := range s.Runtimes {
		uopt.Sources = append(uopt.Sources,
			unwind.Known{By: unwind.ByPrologue, Source: rt.Orphans()},
			unwind.Known{By: unwind.ByCodes, Source: rt.Source()})
	}
	p.Methods.Fill(s.methods)
	images := make([]unwind.Image, len(p.Images))
	for i, img := range p.Images {
		images[i] = img
	}
	s.unwinder = unwind.New(p.Arch, p.Memory, images, &uopt)
	return s
}

// read finds the runtimes and their threads.
func (s *Session) read() {
	s.threads = map[uint32]managedThread{}
	s.Runtimes, s.Warnings = clr.Open(s.Process)
	for _, rt := range s.Runtimes {
		threads, warns := rt.Threads()
		s.Warnings = append(s.Warnings, warns...)
		s.match(rt, threads)
	}
}

// methods lists what the runtimes have compiled, for the process's table.
func (s *Session) methods() (list []loader.Method) {
	for _, rt := range s.Runtimes {
		list = slices.AppendSeq(list, rt.JITMethods)
	}
	return list
}

// match finds the dump's thread of each Thread object: the one of its TID, or,
// because a core written from outside of a container has other TIDs than the
// runtime saw in it, the one whose stack pointer lies on its stack.
func (s *Session) match(rt *clr.Runtime, ts []clr.Thread) {
	bySP := func(t *clr.Thread) (uint32, bool) {
		for i := range s.Process.Threads {
			d := &s.Process.Threads[i]
			sp, ok := d.Regs.Get(s.Process.Arch.SP)
			if _, taken := s.threads[d.ID]; ok && !taken && arch.Addr(sp) >= t.StackLimit && arch.Addr(sp) < t.StackBase {
				return d.ID, true
			}
		}
		return 0, false
	}
	known := make(map[uint32]bool, len(s.Process.Threads))
	for i := range s.Process.Threads {
		known[s.Process.Threads[i].ID] = true
	}
	for i := range ts {
		t := &ts[i]
		if tid := uint32(t.OSID); t.OSID != 0 && known[tid] {
			s.threads[tid] = managedThread{t, rt}
		}
	}
	for i := range ts {
		t := &ts[i]
		if t.OSID == 0 || t.StackBase == 0 || known[uint32(t.OSID)] {
			continue
		}
		if tid, ok := bySP(t); ok {
			s.threads[tid] = managedThread{t, rt}
		}
	}
}

// Thread returns the managed Thread of an OS thread and its runtime, or nil.
func (s *Session) Thread(tid uint32) (*clr.Thread, *clr.Runtime) {
	m := s.threads[tid]
	return m.thread, m.rt
}

// Lookup says which managed code or stub holds a, and of which runtime; nil if
// none does.
func (s *Session) Lookup(a arch.Addr) (clr.Code, *clr.Runtime) {
	for _, rt := range s.Runtimes {
		if c, _ := rt.Lookup(a); c.Kind != clr.NotManaged {
			return c, rt
		}
	}
	return clr.Code{}, nil
}
