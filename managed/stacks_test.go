package managed

import (
	"slices"
	"sync"
	"testing"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// Every thread of every fixture is seen whole: to its root, without a gap, and
// the stack pointer rises all the way.
func TestFixturesWhole(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			s := openFixture(t, name)
			if len(s.Runtimes) != 1 || len(s.Warnings) > 0 || len(s.Process.Problems()) > 0 {
				t.Errorf("%d runtimes, warnings %v %v", len(s.Runtimes), s.Warnings, s.Process.Problems())
			}
			managed := 0
			for i, st := range walkAll(s) {
				tid := s.Process.Threads[i].ID
				if !st.stop.Reason.Complete() {
					t.Errorf("thread %d stops: %v at %v", tid, st.stop.Reason, st.stop.At)
				}
				if n := count(st.frames, Gap); n != 0 {
					t.Errorf("thread %d has %d gaps", tid, n)
				}
				if st.frames[0].By != unwind.ByContext || !st.frames[0].PC.Exact {
					t.Errorf("thread %d begins with %+v", tid, st.frames[0])
				}
				for k := 1; k < len(st.frames); k++ {
					f, before := &st.frames[k], &st.frames[k-1]
					if f.SP <= before.SP {
						t.Errorf("thread %d, frame %d: the stack pointer goes from %v to %v", tid, k, before.SP, f.SP)
					}
				}
				managed += count(st.frames, Managed)
			}
			if managed == 0 {
				t.Error("no managed frame")
			}
		})
	}
}

func count(fs []Frame, k Kind) (n int) {
	for i := range fs {
		if fs[i].Kind == k {
			n++
		}
	}
	return n
}

// What the fixtures are for: each way of being stopped, and each way of
// finding a frame, occurs in them.
func TestFixturesCover(t *testing.T) {
	bys, codes, stubs, crash := map[unwind.By]int{}, map[code.Kind]int{}, map[code.StubKind]int{}, 0
	funclets, exact, longest := 0, 0, 0
	for _, name := range fixtures {
		s := openFixture(t, name)
		if s.Process.Crash != nil {
			crash++
		}
		for _, st := range walkAll(s) {
			longest = max(longest, len(st.frames))
			for i := range st.frames {
				f := &st.frames[i]
				bys[f.By]++
				codes[f.Code.Kind]++
				if f.Code.Kind == code.Stub {
					stubs[f.Code.Stub]++
				}
				if f.Code.Funclet {
					funclets++
				}
				if f.PC.Exact && i > 0 && f.Kind != Gap {
					exact++
				}
			}
		}
	}
	for _, by := range []unwind.By{unwind.ByContext, unwind.ByEhFrame, unwind.ByCodes, unwind.ByPrologue} {
		if bys[by] == 0 {
			t.Errorf("no frame by %v", by)
		}
	}
	for _, k := range []code.Kind{code.NotManaged, code.JIT, code.ReadyToRun, code.Stub} {
		if codes[k] == 0 {
			t.Errorf("no code of kind %v", k)
		}
	}
	if funclets == 0 || exact == 0 || longest < 5000 || crash == 0 || len(stubs) == 0 {
		t.Errorf("%d funclets, %d interrupted frames, a longest stack of %d, %d crashes, stubs %v", funclets, exact, longest, crash, stubs)
	}
	t.Logf("by %v, code %v, stubs %v, %d funclets, %d interrupted, %d crashes", bys, codes, stubs, funclets, exact, crash)
}

// The same stack comes out twice: from a walker that has been anywhere, from a
// new one, on one goroutine and on many.
func TestSameAnswer(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			s := openFixture(t, name)
			want := walkAll(s)
			same := func(how string, i int, fs []Frame, stop unwind.Stop) {
				if !slices.Equal(fs, want[i].frames) || stop != want[i].stop {
					t.Errorf("thread %d, %s: %d frames and %v, else %d and %v", s.Process.Threads[i].ID, how,
						len(fs), stop, len(want[i].frames), want[i].stop)
				}
			}
			w := s.NewWalker()
			for range 2 { // the second time all rules are cached
				for i := len(want) - 1; i >= 0; i-- {
					fs, stop := w.Walk(nil, &s.Process.Threads[i])
					same("in reverse", i, fs, stop)
				}
			}
			for i := range want {
				fs, stop := s.NewWalker().Walk(nil, &s.Process.Threads[i])
				same("nothing cached", i, fs, stop)
			}
			// Another session: nothing that the process was asked before counts.
			fresh := openFixture(t, name)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					w := fresh.NewWalker()
					for i := range want {
						fs, stop := w.Walk(nil, &fresh.Process.Threads[i])
						for k := range fs { // pointers to another session's runtime
							if fs[k].Runtime != nil {
								fs[k].Runtime = s.Runtimes[0]
							}
						}
						same("with others", i, fs, stop)
					}
				})
			}
			wg.Wait()
		})
	}
}

// A warm walk allocates nothing.
func TestWalkNoAllocations(t *testing.T) {
	s := openFixture(t, "net10-scenarios")
	w, buf := s.NewWalker(), make([]Frame, 0, 10000)
	var th *loader.Thread
	for i := range s.Process.Threads {
		th = &s.Process.Threads[i]
		w.Walk(buf, th)
		if n := testing.AllocsPerRun(3, func() { w.Walk(buf, th) }); n > 0 {
			t.Errorf("thread %d: %v allocations", th.ID, n)
		}
	}
}
