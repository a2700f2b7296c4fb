package report

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// Stacks are the same from one goroutine as from several, which share what they
// know of places and use the room of written stacks again, and the same as each
// described for itself.
func TestWalk(t *testing.T) {
	for _, name := range []string{"net10-scenarios", "net10-busy-a", "net10-crash-kernel"} {
		p, err := loader.Open(filepath.Join("..", "..", "testdata", "dumps", name, "core.zst"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s := managed.Open(p, nil)
		var threads []*loader.Thread
		for i := range p.Threads {
			threads = append(threads, &p.Threads[i])
		}
		written := func(each func(*Builder, func(*Thread) error) error) string {
			b := NewBuilder(s, symbolize.New(p))
			var out bytes.Buffer
			o := newJSON(&out, Style{})
			if err := o.Begin(b.Head()); err != nil {
				t.Fatal(err)
			}
			if err := each(b, o.Thread); err != nil {
				t.Fatal(err)
			}
			if err := o.End(b.Tail()); err != nil {
				t.Fatal(err)
			}
			return out.String() + b.Tail().Counts.String()
		}
		want := written(func(b *Builder, emit func(*Thread) error) error {
			w := s.NewWalker()
			for _, th := range threads {
				frames, stop := w.Walk(nil, th)
				if err := emit(b.Stack(th, frames, stop)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, n := range []int{1, 2, 8} {
			got := written(func(b *Builder, emit func(*Thread) error) error { return b.Walk(threads, n, emit) })
			if got != want {
				t.Errorf("%s: %d goroutines give other stacks", name, n)
			}
		}
		broken, seen := errors.New("no room"), 0
		b := NewBuilder(s, nil)
		err = b.Walk(threads, 2, func(*Thread) error { seen++; return broken })
		if !errors.Is(err, broken) || seen != 1 {
			t.Errorf("%s: %v after %d stacks", name, err, seen)
		}
	}
}
