package stacks

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// All walks all threads, in the order of [Stacks.Threads], and hands out one
// after the other. What is handed out is good until the loop goes on; see
// [Thread.Clone]. The error is a [*PanicError], with a nil thread; the threads
// behind it come all the same.
func (s *Stacks) All() iter.Seq2[*Thread, error] {
	return func(yield func(*Thread, error) bool) { s.each(s.Threads(), yield) }
}

// Each walks the given threads of the process and calls emit with one after the
// other, in their order, on the caller's goroutine. It ends at the first error of
// emit, or at a [*PanicError], and returns that. The frames of a thread are
// overwritten once emit returns; see [Thread.Clone].
func (s *Stacks) Each(threads []*loader.Thread, emit func(*Thread) error) (err error) {
	s.each(threads, func(t *Thread, failed error) bool {
		if err = failed; err == nil {
			err = emit(t)
		}
		return err == nil
	})
	return err
}

// A PanicError says that walking or describing a stack has panicked: a defect of
// Seam, or of a runtime of the caller's, that must not end a program that looks
// at the dumps of others.
type PanicError struct {
	TID   uint32 // of the thread whose stack it was; 0: not known
	Value any    // that the walk panicked with
	Stack []byte // of the goroutine, as [debug.Stack] writes it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the stack of thread %d: panic: %v", e.TID, e.Value)
}

// A result is what became of one thread.
type result struct {
	thread *Thread
	err    error
}

// each walks the threads on the workers and calls emit with what became of each,
// in order, until emit returns false. The frames of a stack are overwritten once
// emit returns: to touch new memory for each of 64 threads takes longer than to
// walk them.
func (s *Stacks) each(threads []*loader.Thread, emit func(*Thread, error) bool) {
	n := min(s.workers, len(threads))
	if n > 1 {
		s.eachOnWorkers(threads, n, emit)
		return
	}
	w := s.worker()
	for _, t := range threads {
		r := w.walk(t)
		if !emit(r.thread, r.err) {
			return
		}
		w.d.spare = r.room()
	}
}

// room returns the memory of r's frames, to be used again.
func (r *result) room() []Frame {
	if r.thread == nil {
		return nil
	}
	return r.thread.Frames[:0]
}

// eachOnWorkers is each with n goroutines. Results wait for those of the threads
// before them, so it is bounded how many there are: a process with thousands of
// threads has thousands of stacks.
func (s *Stacks) eachOnWorkers(threads []*loader.Thread, n int, emit func(*Thread, error) bool) {
	results := make([]chan result, len(threads))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	ahead, jobs, quit := make(chan struct{}, 4*n), make(chan int), make(chan struct{})
	spare := make(chan []Frame, 4*n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w := s.worker()
			for i := range jobs {
				select {
				case w.d.spare = <-spare:
				default:
				}
				results[i] <- w.walk(threads[i])
			}
		})
	}
	wg.Go(func() {
		defer close(jobs)
		for i := range threads {
			select {
			case ahead <- struct{}{}:
				jobs <- i
			case <-quit:
				return
			}
		}
	})
	defer wg.Wait()
	defer close(quit)
	for i := range threads {
		r := <-results[i]
		<-ahead
		if !emit(r.thread, r.err) {
			return
		}
		select {
		case spare <- r.room():
		default:
		}
	}
}

// A worker walks and describes stacks on one goroutine.
type worker struct {
	s *Stacks
	w *managed.Walker
	d *describer
}

func (s *Stacks) worker() *worker {
	return &worker{s, s.session.NewWalker(), s.describer()}
}

// walk walks and describes one thread.
func (w *worker) walk(t *loader.Thread) (r result) {
	defer func() {
		if v := recover(); v != nil {
			failed := &PanicError{Value: v, Stack: debug.Stack()}
			if t != nil {
				failed.TID = t.ID
			}
			r = result{err: failed}
			*w = *w.s.worker() // what the old one remembers may be half done
		}
	}()
	return result{thread: w.stack(t)}
}

// stack is walk for a thread that causes no panic.
func (w *worker) stack(t *loader.Thread) *Thread {
	p, out, room := w.s.session.Process, w.d.thread(t), w.d.spare
	w.d.spare = nil
	broken := false
	err := p.GuardRetry(func() {
		if broken { // what both remember may be of bytes that were lost
			*w = *w.s.worker()
		}
		broken = true
		w.d.begin(&out, room)
		for ok := w.w.Start(t); ok; ok = w.w.Next() {
			w.d.keep(&out, w.d.frame(w.w.Frame()))
		}
	})
	stop := w.w.Stop()
	if err != nil {
		stop = w.lost(&out, t)
	}
	w.d.end(&out, stop)
	return &out
}

// keep adds f to out, unless there are as many frames as the limit allows. What
// lies behind those has been described and counted too: which files are missing
// does not depend on how much of a stack is kept.
func (d *describer) keep(out *Thread, f Frame) {
	gap := f.Kind == Gap
	if d.s.limit > 0 && d.shown == d.s.limit {
		if gap {
			out.Omitted.Gaps++
		} else {
			out.Omitted.Frames++
		}
		return
	}
	if !gap {
		d.shown++
	}
	if n := len(out.Frames); n == cap(out.Frames) {
		// By twice: append grows long slices by a quarter, and touches five
		// times the memory that a stack of 5,000 frames needs.
		out.Frames = slices.Grow(out.Frames, max(n, 32))
	}
	out.Frames = append(out.Frames, f)
}

// lost describes a thread whose frames cannot all be named, because a file was
// cut that names were read from: those that can be are.
func (w *worker) lost(out *Thread, t *loader.Thread) unwind.Stop {
	frames, stop := w.w.Walk(nil, t)
	w.d.begin(out, out.Frames)
	for i := range frames {
		w.d.keep(out, w.d.guarded(&frames[i]))
	}
	return stop
}
