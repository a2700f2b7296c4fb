package profiler

import (
	"errors"
	"testing"

	"github.com/seamwalk/seam/managed/clr"
)

// TestArgumentsThatAreNone gives each exported function what is not there, or is of
// another process: it says so, and does not panic.
func TestArgumentsThatAreNone(t *testing.T) {
	s, other := openFixture(t, "net10-hello"), openFixture(t, "net10-hello")
	if n, err := New(nil); n != nil || !errors.Is(err, ErrNoRuntime) {
		t.Errorf("no session: %v", err)
	}
	rt, err := RuntimeOf(other)
	if err != nil {
		t.Fatal(err)
	}
	for what, rt := range map[string]*clr.Runtime{"no runtime": nil, "another session's": rt} {
		if n, err := NewFor(s, rt); n != nil || !errors.Is(err, ErrNoRuntime) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n, err := NewFor(nil, rt); n != nil || !errors.Is(err, ErrNoRuntime) {
		t.Errorf("a runtime without a session: %v", err)
	}

	n := snapshotter(t, s)
	if found := n.FindSeed(nil); found.Seed != nil || found.Stop.Reason.Complete() {
		t.Errorf("the seed of no thread: %+v", found)
	}
	if view, hr := n.View(nil); view != nil || hr != E_INVALIDARG {
		t.Errorf("the view of no thread: %v, %v", view, hr)
	}
	if _, err := n.CheckSeed(nil, &SeedSearch{}, Self, n.buf); err == nil {
		t.Error("a seed of no thread was judged")
	}
	if _, err := n.CheckSeed(&s.Process.Threads[0], nil, Self, n.buf); err == nil {
		t.Error("a seed was compared with nothing")
	}
	if hr := n.Do(Request{TID: 1}, nil); hr != S_OK || n.Why().Row != 5 {
		t.Errorf("a walk of a thread that is none: %v, %v", hr, n.Why())
	}

	// A process of which no runtime could be read says why it has none.
	s.Runtimes = nil
	if n, err := New(s); n != nil || !errors.Is(err, ErrNoRuntime) {
		t.Errorf("no CoreCLR: %v", err)
	}
}

// A seed may be judged by another Snapshotter than the one that has found it, which
// has walked nothing yet.
func TestCheckSeedByAnother(t *testing.T) {
	s := openFixture(t, "net10-hello")
	n := snapshotter(t, s)
	for i := range s.Process.Threads {
		d := &s.Process.Threads[i]
		found := n.FindSeed(d)
		if found.Seed == nil {
			continue
		}
		stale := found.Seed.Regs
		sp, _ := stale.Get(n.a.SP)
		stale.Set(n.a.SP, sp+8)
		ctx := append([]byte(nil), found.Seed.Context...)
		n.ctx.write(ctx, &stale, n.ctx.l.Whole)
		if v, err := snapshotter(t, s).CheckSeed(d, &found, Self, ctx); err != nil || v.Same || v.Text == "" {
			t.Errorf("thread %d: %+v, %v", d.ID, v, err)
		}
		return
	}
	t.Error("no thread has a seed")
}
