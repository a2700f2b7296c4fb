package report

import (
	"slices"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// Walk walks the threads on n goroutines and hands the stacks to emit, one at a
// time, in order. It stops at emit's first error and returns it. The frames of a
// stack are overwritten once emit returns: touching new memory for each of 64
// threads takes longer than walking them.
func (b *Builder) Walk(threads []*loader.Thread, n int, emit func(*Thread) error) error {
	if n = min(n, len(threads)); n <= 1 {
		w, d := b.s.NewWalker(), b.describer()
		for _, t := range threads {
			out := d.walk(w, t)
			if emit != nil {
				if err := emit(out); err != nil {
					return err
				}
			}
			d.spare = out.Frames[:0]
		}
		return nil
	}
	// Results wait for those before them, so what may be under way is bounded:
	// a process with thousands of threads has thousands of stacks.
	results := make([]chan *Thread, len(threads))
	for i := range results {
		results[i] = make(chan *Thread, 1)
	}
	ahead, jobs, quit := make(chan struct{}, 4*n), make(chan int), make(chan struct{})
	spare := make(chan []Frame, 4*n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w, d := b.s.NewWalker(), b.describer()
			for i := range jobs {
				select {
				case d.spare = <-spare:
				default:
				}
				results[i] <- d.walk(w, threads[i])
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
		out := <-results[i]
		<-ahead
		if emit != nil {
			if err := emit(out); err != nil {
				return err
			}
		}
		select {
		case spare <- out.Frames[:0]:
		default:
		}
	}
	return nil
}

// walk walks and describes one thread.
func (d *describer) walk(w *managed.Walker, t *loader.Thread) *Thread {
	out, room := d.b.Thread(t), d.spare
	d.spare = nil
	broken := false
	err := d.b.s.Process.GuardRetry(func() {
		if broken { // what both remember may be of bytes that were lost
			*w = *d.b.s.NewWalker()
			clear(d.places)
		}
		broken = true
		d.again(&out, room)
		for ok := w.Start(t); ok; ok = w.Next() {
			d.add(&out, d.frame(w.Frame()))
		}
	})
	stop := w.Stop()
	if err != nil {
		stop = d.lost(&out, w, t)
	}
	d.end(&out, stop)
	return &out
}

// again begins to describe out's stack, with room for its frames.
func (d *describer) again(out *Thread, room []Frame) {
	out.Frames, out.Omitted = room[:0], Omitted{}
	d.c, d.last, d.gaps, d.shown = Counts{}, arch.PC{}, 0, 0
}

// add adds a frame to out, if it is to be shown.
func (d *describer) add(out *Thread, f Frame) {
	if gap := f.Kind == kindGap; d.b.Limit > 0 && d.shown == d.b.Limit {
		// What lies behind is described and counted too: which files are
		// missing does not depend on how much of a stack is shown.
		if gap {
			out.Omitted.Gaps++
		} else {
			out.Omitted.Frames++
		}
		return
	} else if !gap {
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
func (d *describer) lost(out *Thread, w *managed.Walker, t *loader.Thread) unwind.Stop {
	frames, stop := w.Walk(nil, t)
	d.again(out, out.Frames)
	for i := range frames {
		g := &frames[i]
		f := Frame{PC: g.PC, SP: g.SP, By: g.By.String(), Place: &Place{Kind: g.Kind.String()}}
		d.b.s.Process.GuardRetry(func() { f = d.frame(g) })
		d.add(out, f)
	}
	return stop
}
