package profiler

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed"
)

// TestView holds what a profiler sees against the whole stack: every native
// frame that it finds is one of the stack, at the same place, in the same order.
func TestView(t *testing.T) {
	type place struct{ pc, sp arch.Addr }
	for _, name := range []string{"net10-hello", "net10-scenarios", "net10-r2r"} {
		s := openFixture(t, name)
		n := snapshotter(t, s)
		w := s.NewWalker()
		runs := 0
		for i := range s.Process.Threads {
			d := &s.Process.Threads[i]
			if m, _ := s.Thread(d.ID); m == nil {
				continue
			}
			var native []place
			frames, _ := w.Walk(nil, d)
			for _, f := range frames {
				if f.Kind == managed.Native {
					native = append(native, place{f.PC.Addr, f.SP})
				}
			}
			view, hr := n.View(d)
			if hr == S_OK && len(view) == 0 {
				t.Errorf("%s: thread %d: S_OK and no callback", name, d.ID)
			}
			for _, v := range view {
				if v.Frame.Kind == managed.Managed {
					continue
				}
				runs++
				if len(v.Run) == 0 || v.Run[0].PC.Addr != v.Frame.PC.Addr || v.Run[0].SP != v.Frame.SP {
					t.Errorf("%s: thread %d: a run at %v begins %+v", name, d.ID, v.Frame.PC.Addr, v.Run)
				}
				for _, f := range v.Run {
					at := slices.Index(native, place{f.PC.Addr, f.SP})
					if at < 0 {
						t.Errorf("%s: thread %d: %v at %v is no frame of the stack", name, d.ID, f.PC.Addr, f.SP)
						break
					}
					native = native[at+1:]
				}
			}
		}
		if runs < len(n.tids)-3 {
			t.Errorf("%s: %d runs", name, runs)
		}
	}
}
