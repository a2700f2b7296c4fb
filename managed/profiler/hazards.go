package profiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
)

// A Hazard is a guideline of asynchronous stack walks that a process breaks, as
// far as its dump shows.
type Hazard struct {
	Rule           string // the guideline
	Text           string // what was seen
	Walker, Target uint32 // TIDs
	Lock           string // kind of what the walker waits for; "" if it waits for nothing
	LockAt         arch.Addr
	Holder         uint32   // who holds it; 0: not known
	Threads        []uint32 // the walker, the target, and who else has a part in it
	Victims        []uint32 // others that wait for the same
	Waits          []Wait
	Frames         []HazardFrame // that show it
	WayOut         string
}

// A Wait is one thread waiting for another.
type Wait struct {
	Who, Whom uint32
	What      string
}

// A HazardFrame is a frame of a thread, by its place on the stack.
type HazardFrame struct {
	TID   uint32
	Index int
	Frame managed.Frame
	Name  string
}

// A Namer names the frames of a thread: functions as their symbols are called,
// without parameters, methods by their metadata names.
type Namer func(t *loader.Thread, frames []managed.Frame) []string

// A stoppedStack is one thread as the guidelines look at it.
type stoppedStack struct {
	tid     uint32
	thread  *clr.Thread // nil if the runtime does not know it
	frames  []managed.Frame
	names   []string
	images  []*loader.Image
	waiting bool      // it is in a system call
	word    arch.Addr // and this is that one's first argument
	// A target was interrupted by a signal whose handler has not returned:
	// frames[handler] is the handler's, of image library, and frames[at] the
	// frame that was interrupted. handler is -1 if it was not.
	handler, at int
	library     *loader.Image
	calls       *loader.Image // that its newest P/Invoke leads to
}

// Hazards looks for guidelines that the process breaks: a profiler that has
// stopped a thread in the handler of a signal, in which it waits for the
// profiler, while the profiler's walker is where it must not be. A process in
// which no thread is stopped so has none.
//
// It is an error if s has no CoreCLR, or if name is nil.
func Hazards(s *managed.Session, name Namer) ([]Hazard, error) {
	rt, err := RuntimeOf(s)
	if err != nil {
		return nil, err
	}
	if name == nil {
		return nil, errors.New("guidelines are judged by the names of functions, and nobody is given to name them")
	}
	rp := rt.Replay()
	var (
		stacks []stoppedStack
		w      = s.NewWalker()
	)
	for i := range s.Process.Threads {
		t := &s.Process.Threads[i]
		st := stoppedStack{tid: t.ID, handler: -1}
		st.thread, _ = s.Thread(t.ID)
		st.frames, _ = w.Walk(nil, t)
		st.images = make([]*loader.Image, len(st.frames))
		for k := range st.frames {
			if st.frames[k].Kind == managed.Native {
				st.images[k] = s.Process.ImageAt(st.frames[k].PC.Lookup())
			}
		}
		if pc, ok := t.Regs.Get(s.Process.Arch.PC); ok {
			st.waiting = rp.AfterSyscall(arch.Addr(pc))
		}
		if st.waiting {
			st.word = rp.SyscallArgument(&t.Regs)
		}
		st.stopped(rt.Image)
		if st.thread != nil {
			st.calls = newestCall(rp, st.thread)
		}
		stacks = append(stacks, st)
	}
	if !slices.ContainsFunc(stacks, func(st stoppedStack) bool { return st.handler >= 0 }) {
		return nil, nil // names cost the most
	}
	for i := range stacks {
		stacks[i].names = name(&s.Process.Threads[i], stacks[i].frames)
	}
	j := judge{stacks: stacks, runtime: rt.Image, mem: s.Process.Memory}
	j.suspensionAt, j.suspender = suspender(s, rp)
	return j.hazards(), nil
}

// stopped finds the signal handler that the thread is in. The runtime's own
// handlers stop threads as well, at safe points that it chose.
func (st *stoppedStack) stopped(runtime *loader.Image) {
	for k := 2; k < len(st.frames); k++ {
		// The frame below a trampoline was interrupted: its pc is exact.
		if f := &st.frames[k]; f.Kind == managed.Gap || !f.PC.Exact {
			continue
		}
		if lib := st.images[k-2]; lib != nil && lib != runtime && st.waiting {
			st.handler, st.at, st.library = k-2, k, lib
			return
		}
	}
}

// newestCall returns the image that the newest P/Invoke of t leads to.
func newestCall(rp *clr.Replay, t *clr.Thread) *loader.Image {
	var c frameChain
	for c.begin(rp, t.Frame); !c.end; c.next(rp) {
		if c.frame.Kind == clr.InlinedCallFrame {
			return rp.PInvokeImage(c.frame)
		}
	}
	return nil
}

// suspender returns the thread that suspends the runtime, 0 if none does, and
// the variable that says so.
func suspender(s *managed.Session, rp *clr.Replay) (at arch.Addr, tid uint32) {
	at, thread := rp.Suspender()
	for i := range s.Process.Threads {
		if t, _ := s.Thread(s.Process.Threads[i].ID); t != nil && thread != 0 && t.Addr == thread {
			return at, s.Process.Threads[i].ID
		}
	}
	return at, 0
}

// judge holds the guidelines against the threads of a process.
type judge struct {
	stacks       []stoppedStack
	runtime      *loader.Image
	mem          arch.Memory
	suspensionAt arch.Addr
	suspender    uint32
}

func (j *judge) hazards() (out []Hazard) {
	for t := range j.stacks {
		target := &j.stacks[t]
		if target.handler < 0 {
			continue
		}
		var found []Hazard
		for w := range j.stacks {
			if walker := &j.stacks[w]; w != t && j.walks(walker, target) {
				for _, rule := range hazardRules {
					h, ok := rule.broken(j, walker, target)
					if !ok {
						continue
					}
					h.Rule, h.WayOut, h.Walker, h.Target = rule.rule, rule.wayOut, walker.tid, target.tid
					h.Threads = append([]uint32{walker.tid, target.tid}, h.Threads...)
					found = append(found, h)
					break
				}
			}
		}
		out = append(out, found...)
	}
	return out
}

// walks reports whether w may be the walker that has stopped target: it is in
// the library that the handler belongs to, or has just called it.
func (j *judge) walks(w, target *stoppedStack) bool {
	return w.handler < 0 && (w.calls == target.library || slices.Contains(w.images, target.library))
}

// inLibrary returns the index of the youngest frame of w in lib, -1 if there is none.
func inLibrary(w *stoppedStack, lib *loader.Image) int { return slices.Index(w.images, lib) }

// show adds frames from to of st.
func (h *Hazard) show(st *stoppedStack, from, to int) {
	for k := max(from, 0); k < min(to, len(st.frames)); k++ {
		h.Frames = append(h.Frames, HazardFrame{TID: st.tid, Index: k, Frame: st.frames[k], Name: st.name(k)})
	}
}

// held completes a hazard in which the walker waits for the target, and the
// target, in the handler, for the walker.
func (j *judge) held(h *Hazard, w, t *stoppedStack, what string) {
	h.Waits = []Wait{{w.tid, t.tid, what}, {t.tid, w.tid, "to be let go, in the signal handler " + t.name(t.handler)}}
	for i := range j.stacks {
		o := &j.stacks[i]
		if o.tid != w.tid && o.tid != t.tid && o.waiting && w.waiting && w.word != 0 && o.word == w.word {
			h.Victims = append(h.Victims, o.tid)
		}
	}
}

// name is what to call frame k in a sentence.
func (st *stoppedStack) name(k int) string {
	switch img := st.images[k]; {
	case st.names[k] != "":
		return st.names[k]
	case img != nil:
		return fmt.Sprintf("%s+%#x", img.ID.Name, uint64(st.frames[k].PC.Addr)-img.Bias())
	}
	return fmt.Sprint(st.frames[k].PC.Addr)
}
