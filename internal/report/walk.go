package report

import (
	"sync"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// Walk walks the threads on n goroutines and hands the stacks to emit, one at a
// time, in order. It stops at emit's first error and returns it.
func (b *Builder) Walk(threads []*loader.Thread, n int, emit func(*Thread) error) error {
	if n = min(n, len(threads)); n <= 1 {
		w, buf := b.s.NewWalker(), []managed.Frame(nil)
		for _, t := range threads {
			var out *Thread
			if out, buf = b.walk(w, t, buf); emit != nil {
				if err := emit(out); err != nil {
					return err
				}
			}
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
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w, buf := b.s.NewWalker(), []managed.Frame(nil)
			for i := range jobs {
				var out *Thread
				out, buf = b.walk(w, threads[i], buf)
				results[i] <- out
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
		if emit == nil {
			continue
		}
		if err := emit(out); err != nil {
			return err
		}
	}
	return nil
}

// walk walks and describes one thread, with buf as scratch.
func (b *Builder) walk(w *managed.Walker, t *loader.Thread, buf []managed.Frame) (*Thread, []managed.Frame) {
	frames, stop := w.Walk(buf[:0], t)
	return b.Stack(t, frames, stop), frames
}
