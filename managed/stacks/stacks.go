package stacks

import (
	"errors"
	"runtime"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// Options change what is handed out. The zero value is fine.
type Options struct {
	// Limit is how many frames of a stack are kept, from the leaf on; 0: all.
	// The rest are walked and counted all the same, so that a limit changes
	// nothing else: neither why a stack ends nor which files are missing.
	Limit int
	// Workers is how many goroutines walk stacks; 0: one for each CPU that the
	// program may use.
	Workers int
	// NoSymbols leaves native functions without names, and managed frames without
	// lines. Symbol tables and PDBs are then not read, which saves most of the time
	// where they are large.
	NoSymbols bool
}

// Stacks makes the values of this package from a session. It is safe for
// concurrent use, as long as the process of the session is open, and remembers
// what code is called: to use one for all stacks of a process is quicker than to
// make one for each.
type Stacks struct {
	session *managed.Session
	symbols *symbolize.Symbolizer // nil with Options.NoSymbols
	lines   *lineTable            // nil with Options.NoSymbols
	limit   int
	workers int

	mu      sync.RWMutex
	methods map[methodKey]*named
	needs   map[*loader.Image]*Missing
	pdbs    map[pdbKey]*Missing
	ending  ending
	framed  map[*loader.Image]bool // images that .debug_frame found a caller in
	counts  Counts
}

// Of returns the stacks of a session. It walks nothing yet.
func Of(session *managed.Session, opt *Options) *Stacks {
	if opt == nil {
		opt = &Options{}
	}
	s := &Stacks{
		session: session,
		limit:   opt.Limit,
		workers: opt.Workers,
		methods: map[methodKey]*named{},
		needs:   map[*loader.Image]*Missing{},
		pdbs:    map[pdbKey]*Missing{},
		framed:  map[*loader.Image]bool{},
	}
	if s.workers <= 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	if !opt.NoSymbols {
		s.symbols = symbolize.New(session.Process)
		s.lines = &lineTable{p: session.Process}
	}
	return s
}

// Session returns the session that s is of.
func (s *Stacks) Session() *managed.Session { return s.session }

// Threads returns the threads of the process, the one that ended it in front, the
// others in the order of the dump.
func (s *Stacks) Threads() []*loader.Thread {
	p := s.session.Process
	out := make([]*loader.Thread, 0, len(p.Threads))
	for i := range p.Threads {
		t := &p.Threads[i]
		if out = append(out, t); s.crashed(t) {
			copy(out[1:], out)
			out[0] = t
		}
	}
	return out
}

// crashed reports whether t is the thread that ended the process.
func (s *Stacks) crashed(t *loader.Thread) bool {
	tid := s.ended().tid
	return tid != 0 && tid == t.ID
}

// Thread describes a thread without its stack.
func (s *Stacks) Thread(t *loader.Thread) Thread { return s.describer().thread(t) }

// thread is Stacks.Thread.
func (d *describer) thread(t *loader.Thread) Thread {
	s := d.s
	out := Thread{TID: t.ID, Name: t.Name, Crashed: s.crashed(t)}
	m, rt := s.session.Thread(t.ID)
	if m == nil {
		return out
	}
	if out.Mode, out.ManagedID = Preemptive, m.ID; m.Cooperative {
		out.Mode = Cooperative
	}
	s.session.Process.GuardRetry(func() {
		out.Exception = d.inProgress(&out, m, rt)
		if naming, ok := rt.(code.Naming); ok {
			if out.Role = naming.Role(m); t.Name == "" {
				out.Name = naming.ThreadName(m)
			}
		}
	})
	return out
}

// inProgress describes the exception that is in progress on a thread, or that ended
// the process there; nil if there is none.
func (d *describer) inProgress(t *Thread, m *code.Thread, rt code.Runtime) *Exception {
	if throwing, ok := rt.(code.Throwing); ok {
		if e := throwing.InFlight(m); e != nil {
			return d.exception(rt, e)
		}
	}
	if !t.Crashed || d.s.ended().end != code.EndUnhandled {
		return nil
	}
	if _, e := d.s.ends(t.TID); e != nil {
		return d.exception(rt, e)
	}
	return nil
}

// Describe describes a thread and frames of it that the caller has found, such
// as the native frames that a profiler walks from a callback's registers. All
// frames are kept, whatever the limit.
func (s *Stacks) Describe(t *loader.Thread, frames []managed.Frame, stop unwind.Stop) *Thread {
	d := s.describer()
	out := d.thread(t)
	d.begin(&out, make([]Frame, 0, len(frames)))
	for i := range frames {
		out.Frames = append(out.Frames, d.guarded(&frames[i]))
	}
	d.end(&out, stop)
	return &out
}

// Place describes the code that a frame stands at, for who steps from frame to
// frame himself (see [managed.Walker]). Nothing of it is in [Stacks.Summary].
func (s *Stacks) Place(f *managed.Frame) *Place {
	return s.describer().guarded(f).Place
}

// A methodKey is what decides how a method is called.
type methodKey struct {
	rt code.Runtime
	id arch.Addr // the MethodDesc, or the start of the code where that is not known
}

// named is what a method is called, worked out once.
type named struct {
	m        code.Method
	function string
	module   string
	unknown  bool // it is not known which method it is
}

// name names the method that c is code of.
func (s *Stacks) name(rt code.Runtime, c *code.Code) *named {
	k := methodKey{rt, c.Method}
	if c.Method == 0 {
		k.id = c.Start
	}
	if k.id == 0 {
		return describe(rt, c) // nothing tells its method from others
	}
	s.mu.RLock()
	n := s.methods[k]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	n = describe(rt, c)
	s.mu.Lock()
	s.methods[k] = n
	s.mu.Unlock()
	return n
}

// describe is Stacks.name without a memory. The error of Describe says what could
// not be read; that is missing from the method, which is all there is to show.
func describe(rt code.Runtime, c *code.Code) *named {
	m, err := rt.Describe(c)
	return &named{m: m, function: symbolize.Managed(&m), module: baseName(m.Module), unknown: errors.Is(err, code.ErrNoMethod)}
}
