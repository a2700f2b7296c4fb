package managed

import (
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestHiddenImages walks recorded dumps, as the runtime's createdump wrote
// them, with no image file at hand. Of each stack of the fixture that was cut
// with all files: no JIT-compiled frame is lost, with its method, and where
// another frame is, a gap or the stop stands in front of it.
func TestHiddenImages(t *testing.T) {
	for _, c := range []struct{ fixture, dump string }{
		{"net10-hello", "net10-hello-x64/normal.zst"},
		{"net10-scenarios", "net10-scenarios-x64/normal.zst"},
		{"net10-r2r", "net10-r2r-x64/normal.zst"},
		{"net10-singlefile", "net10-singlefile-x64/normal.zst"},
		{"net10-busy-b", "net10-busy-x64/b/dump.zst"},
	} {
		p, err := loader.Open(filepath.Join(corpus.Path(t), filepath.FromSlash(c.dump)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s := Open(p, nil)
		whole := openFixture(t, c.fixture)
		w := s.NewWalker()
		jit, frames, lost, gaps := 0, 0, 0, 0
		for i, want := range walkAll(whole) {
			th := threadOf(t, s, whole.Process.Threads[i].ID)
			got, stop := w.Walk(nil, th)
			at := map[place]int{}
			for k := range got {
				if got[k].Kind != Gap {
					at[placeOf(&got[k])] = k
				} else {
					gaps++
				}
			}
			last := -1 // in got, of the last frame of want that is there
			for k := range want.frames {
				f := &want.frames[k]
				frames++
				isJIT := f.Code.Kind == code.JIT
				if isJIT {
					jit++
				}
				g, ok := at[placeOf(f)]
				switch {
				case ok && isJIT && (got[g].Code.Kind != code.JIT || got[g].Code.Method != f.Code.Method):
					t.Errorf("%s: thread %d, frame %d is another method: %+v, want %+v", c.fixture, th.ID, k, got[g].Code, f.Code)
					last = g
				case ok:
					last = g
				case isJIT:
					t.Errorf("%s: thread %d loses frame %d, JIT-compiled, at %v", c.fixture, th.ID, k, placeOf(f))
				default:
					lost++
					if last+1 < len(got) && got[last+1].Kind != Gap || last+1 >= len(got) && stop.Reason.Complete() {
						t.Errorf("%s: thread %d loses frame %d at %v without a word", c.fixture, th.ID, k, placeOf(f))
					}
				}
			}
		}
		t.Logf("%s: %d frames with all files, %d of them JIT-compiled; without files %d are lost, behind %d gaps", c.fixture, frames, jit, lost, gaps)
	}
}
