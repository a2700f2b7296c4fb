package managed

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

// TestResumeBehindGaps begins walks anew at frames of every stack, from the registers that the
// walker gave for them: each finds the frames that the whole walk has found from
// there on. The dumps lack the unwind tables of the runtime's native code, so that
// walks pass explicit Frames, which one that begins anew has to find again.
func TestResumeBehindGaps(t *testing.T) {
	for _, name := range fixtures {
		whole := openFixture(t, name)
		c := editable(t, name)
		tables, ok := coreclr(whole).Image.Table(".eh_frame_hdr")
		if !ok {
			t.Fatalf("%s: the runtime has no unwind tables", name)
		}
		c.Hole(uint64(tables.Lo), uint64(tables.Hi-tables.Lo))
		openEdit(t, c, func(s *Session) {
			sum := resumed{s: s, w: s.NewWalker()}
			for i := range s.Process.Threads {
				sum.thread(t, name, &s.Process.Threads[i])
			}
			if sum.walks < 30 || sum.byFrames == 0 && name != "net10-crash-kernel" {
				t.Errorf("%s: %d walks from a frame on, %d of them by an explicit Frame", name, sum.walks, sum.byFrames)
			}
		})
	}
}

// A resumed counts walks that began anew.
type resumed struct {
	s        *Session
	w        *Walker
	walks    int
	byFrames int // that an explicit Frame led on
}

// maxResumed bounds the frames of one stack from which a walk begins anew.
const maxResumed = 40

func (r *resumed) thread(t *testing.T, name string, th *loader.Thread) {
	a := r.s.Process.Arch
	want, stop := r.s.NewWalker().Walk(nil, th)
	var regs []arch.Regs
	for ok := r.w.Start(th); ok; ok = r.w.Next() {
		regs = append(regs, *r.w.Regs())
	}
	for k := range want[:min(len(want), maxResumed)] {
		f := &want[k]
		if f.Kind == Gap {
			continue
		}
		pc, _ := regs[k].Get(a.PC)
		sp, known := regs[k].Get(a.SP)
		if arch.Addr(pc) != f.PC.Addr || arch.Addr(sp) != f.SP {
			t.Errorf("%s: thread %d, frame %d at %v has the registers of %#x, %#x", name, th.ID, k, placeOf(f), pc, sp)
		}
		if f.PC.Exact || !known {
			continue // no return address, or nowhere to begin
		}
		n, led := k, false
		for ok := r.w.Resume(&regs[k]); ok; ok = r.w.Next() {
			got := r.w.Frame()
			if n >= len(want) || got.Kind != want[n].Kind || placeOf(got) != placeOf(&want[n]) {
				t.Fatalf("%s: thread %d, from frame %d on: frame %d is %+v", name, th.ID, k, n, got)
			}
			led = led || got.By == unwind.ByExplicitFrame
			n++
		}
		if n != len(want) || r.w.Stop().Reason != stop.Reason {
			t.Errorf("%s: thread %d, from frame %d on: ends after %d of %d frames: %v", name, th.ID, k, n, len(want), r.w.Stop())
		}
		r.walks++
		if led {
			r.byFrames++
		}
	}
}
