package managed

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// A standing is a frame that a walk by Next has come to, and its registers.
type standing struct {
	frame Frame
	regs  arch.Regs
}

// standings walks a thread by Next.
func standings(w *Walker, s *Session, i int) (list []standing, stop unwind.Stop) {
	for ok := w.Start(&s.Process.Threads[i]); ok; ok = w.Next() {
		list = append(list, standing{*w.Frame(), *w.Regs()})
	}
	return list, w.Stop()
}

// TestLeave holds walks by Leave against walks by Next. They come to the same frames
// up to the first gap, at which Leave stops for the reason that the gap has.
func TestLeave(t *testing.T) {
	for _, name := range fixtures {
		leaveAll(t, name, openFixture(t, name))
	}
	c := editable(t, "net10-scenarios")
	whole := openFixture(t, "net10-scenarios")
	loseHeaders(c, headersOf(whole, walkAll(whole)), false)
	openEdit(t, c, func(s *Session) {
		if gaps := leaveAll(t, "net10-scenarios without headers", s); gaps == 0 {
			t.Error("no stack has a gap")
		}
	})
}

// leaveAll walks the threads of s by Leave and by Next, and returns how many stacks
// have a gap.
func leaveAll(t *testing.T, name string, s *Session) (gaps int) {
	w, by := s.NewWalker(), s.NewWalker()
	for i := range s.Process.Threads {
		tid := s.Process.Threads[i].ID
		want, stop := standings(by, s, i)
		k := 0
		for ok := w.Start(&s.Process.Threads[i]); ok; ok = w.Leave() {
			if k == len(want) || placeOf(w.Frame()) != placeOf(&want[k].frame) {
				t.Fatalf("%s: thread %d: frame %d is at %v", name, tid, k, placeOf(w.Frame()))
			}
			k++
		}
		if k < len(want) {
			gaps++
			if stop = want[k].frame.Why; want[k].frame.Kind != Gap {
				t.Errorf("%s: thread %d: stopped behind %d of %d frames, where there is no gap", name, tid, k, len(want))
			}
		}
		if w.Stop() != stop {
			t.Errorf("%s: thread %d: %+v, want %+v", name, tid, w.Stop(), stop)
		}
	}
	return gaps
}

// TestLeaveGap goes on from a gap by Leave, to the frame that Next comes to.
func TestLeaveGap(t *testing.T) {
	c := editable(t, "net10-scenarios")
	whole := openFixture(t, "net10-scenarios")
	loseHeaders(c, headersOf(whole, walkAll(whole)), false)
	tried := 0
	openEdit(t, c, func(s *Session) {
		w, by := s.NewWalker(), s.NewWalker()
		for i := range s.Process.Threads {
			th := &s.Process.Threads[i]
			for ok, also := w.Start(th), by.Start(th); ok && also; ok, also = w.Next(), by.Next() {
				if w.Frame().Kind != Gap {
					continue
				}
				tried++
				if !w.Leave() || !by.Next() || *w.Frame() != *by.Frame() || *w.Regs() != *by.Regs() {
					t.Fatalf("thread %d: behind the gap: %+v, want %+v", th.ID, *w.Frame(), *by.Frame())
				}
			}
		}
	})
	if tried == 0 {
		t.Error("no stack has a gap")
	}
}

// TestResume takes the registers of each frame that has called another, and goes on
// from them: the frames behind it are the same, with the same registers.
func TestResume(t *testing.T) {
	resumed := 0
	for _, name := range []string{"net10-hello", "net10-hello-arm64"} {
		s := openFixture(t, name)
		w, by := s.NewWalker(), s.NewWalker()
		for i := range s.Process.Threads {
			want, _ := standings(by, s, i)
			w.Start(&s.Process.Threads[i])
			for k := range want {
				f := &want[k].frame
				if f.Kind == Gap || f.PC.Exact || f.SP == 0 {
					continue
				}
				resumed++
				if !w.Resume(&want[k].regs) || placeOf(w.Frame()) != placeOf(f) {
					t.Fatalf("%s: resumed at %+v: %+v, %v", name, f, *w.Frame(), w.Stop())
				}
				if k+1 < len(want) && (!w.Next() || placeOf(w.Frame()) != placeOf(&want[k+1].frame) || *w.Regs() != want[k+1].regs) {
					t.Errorf("%s: behind %+v: %+v, want %+v", name, f, *w.Frame(), want[k+1].frame)
				}
			}
		}
	}
	if t.Logf("%d frames", resumed); resumed < 500 {
		t.Error("too few")
	}
	// Without a stack pointer there is nothing to go on from.
	s := openFixture(t, "net10-hello")
	w := s.NewWalker()
	w.Start(&s.Process.Threads[0])
	if w.Resume(&arch.Regs{}) || w.Stop().Reason != unwind.NotStarted {
		t.Errorf("resumed without registers: %+v", w.Stop())
	}
}
