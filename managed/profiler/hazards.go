package profiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/stacks"
	"github.com/seamwalk/seam/unwind"
)

// A Hazard is a guideline of asynchronous stack walks that a process breaks, as
// far as its dump shows. It is plain values: nothing of it refers to the process.
type Hazard struct {
	Rule           string    // the guideline
	Text           string    // what was seen, in a sentence
	Walker, Target uint32    // TIDs
	Lock           string    // kind of what the walker waits for; "" if it waits for nothing
	LockAt         arch.Addr // where that is in memory; 0 if it is not known
	Holder         uint32    // TID of the thread that holds it; 0 if it is not known
	Threads        []uint32  // TIDs of the walker, of the target, and of whoever else has a part in it
	Victims        []uint32  // TIDs of other threads that wait for the same
	Waits          []Wait
	Frames         []HazardFrame // that show it
	WayOut         string        // what the profiler is to do instead
}

// A Wait is one thread waiting for another.
type Wait struct {
	Who, Whom uint32 // TIDs
	What      string // that it waits for, as in "the loader lock"
}

// A HazardFrame is a frame of a thread, by its place on the stack.
type HazardFrame struct {
	TID   uint32
	Index int // on the thread's stack, counted from 0 at the leaf
	Frame stacks.Frame
	// Name is what a sentence calls the frame: the function's symbol, or the
	// method's name in the metadata; of code without a name the image and the
	// offset in it, as in "libc.so.6+0x91d6b", or the pc.
	Name string
}

// String says where the frame is, as in "thread 71, frame 2: 0x7f5b6c malloc".
func (f *HazardFrame) String() string {
	return fmt.Sprintf("thread %d, frame %d: %v %s", f.TID, f.Index, f.Frame.PC.Addr, f.Name)
}

// Hazards looks for guidelines that the process of s breaks: a profiler has
// stopped a thread in the handler of a signal, where the thread waits for the
// profiler, while the profiler's walker is where it must not be. A process in which
// no thread is stopped so breaks none. Guidelines are judged by the names of
// functions: with stacks.Options.NoSymbols, or without the files that have the names,
// some kinds of locks are not known.
//
// It is an error if s is nil, if its process has no CoreCLR (ErrNoRuntime), or if
// the dump's file was cut while it was read.
func Hazards(s *stacks.Stacks) (list []Hazard, err error) {
	if s == nil {
		return nil, errors.New("there are no stacks to look for broken guidelines in")
	}
	session := s.Session()
	rt, err := RuntimeOf(session)
	if err != nil {
		return nil, err
	}
	err = session.Process.GuardRetry(func() { list = hazardsOf(s, session, rt) })
	return list, err
}

func hazardsOf(s *stacks.Stacks, session *managed.Session, rt *clr.Runtime) []Hazard {
	p, rp, w := session.Process, rt.Replay(), session.NewWalker()
	j := judge{stacks: make([]stoppedStack, len(p.Threads)), runtime: rt.Image, mem: p.Memory}
	walked := make([][]managed.Frame, len(p.Threads))
	stopped := false
	for i := range p.Threads {
		st := &j.stacks[i]
		walked[i], _ = w.Walk(nil, &p.Threads[i])
		st.look(session, rp, &p.Threads[i], walked[i])
		stopped = st.stopped(rt.Image, walked[i]) || stopped
	}
	if !stopped {
		return nil // names cost the most
	}
	for i := range p.Threads {
		j.stacks[i].frames = s.Describe(&p.Threads[i], walked[i], unwind.Stop{Reason: unwind.EndOfStack}).Frames
	}
	j.suspensionAt, j.suspender = suspender(session, rp)
	return j.hazards()
}

// A stoppedStack is one thread as the guidelines look at it.
type stoppedStack struct {
	tid     uint32
	thread  *code.Thread    // nil if the runtime does not know it
	frames  []stacks.Frame  // from the leaf to the root
	images  []*loader.Image // that the native ones among frames are in
	waiting bool            // it is in a system call
	word    arch.Addr       // the first argument of that system call: for futex, the word that it waits for
	// A target was interrupted by a signal whose handler has not returned.
	// frames[handler] is the handler's and lies in the image library; frames[at]
	// is the frame that was interrupted. handler is -1 if there is none.
	handler, at int
	library     *loader.Image
	calls       *loader.Image // that its newest P/Invoke leads to
}

// look fills st with what a dump says of t besides the names of its frames.
func (st *stoppedStack) look(s *managed.Session, rp *clr.Replay, t *loader.Thread, frames []managed.Frame) {
	st.tid, st.handler = t.ID, -1
	st.images = make([]*loader.Image, len(frames))
	for k := range frames {
		if frames[k].Kind == managed.Native {
			st.images[k] = s.Process.ImageAt(frames[k].PC.Lookup())
		}
	}
	if pc, ok := t.Regs.Get(s.Process.Arch.PC); ok {
		st.waiting = rp.AfterSyscall(arch.Addr(pc))
	}
	if st.waiting {
		st.word = rp.SyscallArgument(&t.Regs)
	}
	if st.thread, _ = s.Thread(t.ID); st.thread != nil {
		st.calls = newestCall(rp, st.thread)
	}
}

// stopped finds the signal handler that the thread is in, and reports whether it is
// in one. The runtime's own handlers do not count: they stop threads as well, at
// safe points that the runtime has chosen.
func (st *stoppedStack) stopped(runtime *loader.Image, frames []managed.Frame) bool {
	for k := 2; k < len(frames); k++ {
		// The frame behind the trampoline of a signal was interrupted: its pc is
		// exact. The frame in front of the trampoline is the handler's.
		if f := &frames[k]; f.Kind == managed.Gap || !f.PC.Exact {
			continue
		}
		if lib := st.images[k-2]; lib != nil && lib != runtime && st.waiting {
			st.handler, st.at, st.library = k-2, k, lib
			return true
		}
	}
	return false
}

// newestCall returns the image that the newest P/Invoke of t leads to.
func newestCall(rp *clr.Replay, t *code.Thread) *loader.Image {
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

// function returns what frame k is called: the function's symbol, or the method's
// name in the metadata, which has no parameters; "" if it has no name.
func (st *stoppedStack) function(k int) string {
	f := &st.frames[k]
	if f.Method != nil {
		return f.Method.Name
	}
	return f.Function
}

// name returns what to call frame k in a sentence.
func (st *stoppedStack) name(k int) string {
	name, img := st.function(k), st.images[k]
	switch {
	case name != "":
		return name
	case img != nil:
		return fmt.Sprintf("%s+%#x", img.ID.Name, uint64(st.frames[k].PC.Addr)-img.Bias())
	}
	return st.frames[k].PC.Addr.String()
}
