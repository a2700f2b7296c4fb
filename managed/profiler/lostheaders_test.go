package profiler

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// funcletHeaders returns the JIT-compiled methods that have a frame of a funclet,
// each once.
func funcletHeaders(s *managed.Session) (methods []clr.Code) {
	seen := map[arch.Addr]bool{}
	w := s.NewWalker()
	var frames []managed.Frame
	for i := range s.Process.Threads {
		frames, _ = w.Walk(frames[:0], &s.Process.Threads[i])
		for k := range frames {
			in := frames[k].Code
			if in.Kind == code.JIT && in.Body.Lo != 0 && in.Funclet && !seen[in.Start] {
				seen[in.Start] = true
				own, _ := frames[k].Runtime.(*clr.Runtime).CodeAt(in.Start)
				methods = append(methods, own)
			}
		}
	}
	return methods
}

// TestLostHeadersContract takes the code headers of methods out of a recorded
// dump that has a frame of a funclet, and their MethodDescs by the precodes
// alone: DoStackSnapshot makes the callbacks of the whole dump, or stops and
// says why. The runtime hides frames between a funclet and its method, so a
// funclet that passes for a body would show them.
func TestLostHeadersContract(t *testing.T) {
	path := corpus.Path(t, "net10-callbacks-x64", "dump.zst")
	c, err := coreedit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		calls []Call
		hr    HRESULT
	}
	replays := func(s *managed.Session) map[uint32]result {
		n, out := snapshotter(t, s), map[uint32]result{}
		for _, tid := range n.tids {
			var r result
			r.hr = n.Do(Request{TID: tid}, func(c Call) HRESULT {
				r.calls = append(r.calls, Call{Function: c.Function, IP: c.IP})
				return S_OK
			})
			out[tid] = r
		}
		return out
	}
	var want map[uint32]result
	var headers []clr.Code
	openPath(t, path, func(s *managed.Session) {
		want, headers = replays(s), funcletHeaders(s)
	})
	for _, link := range []bool{false, true} {
		c := c.Clone()
		for i := range headers {
			if link {
				c.Hole(uint64(headers[i].Start)-8, 8)
			} else {
				c.Hole(uint64(headers[i].Header), 32)
			}
		}
		same, stopped := 0, 0
		openEdit(t, c, func(s *managed.Session) {
			for tid, got := range replays(s) {
				w := want[tid]
				switch {
				case got.hr == w.hr && slices.Equal(got.calls, w.calls):
					same++
				case got.hr == S_OK || len(got.calls) > len(w.calls) || !slices.Equal(got.calls, w.calls[:len(got.calls)]):
					t.Errorf("thread %d: %v after %d callbacks, want %v after %d", tid, got.hr, len(got.calls), w.hr, len(w.calls))
				default:
					stopped++
				}
			}
		})
		t.Logf("%d calls are the same, %d stop before", same, stopped)
		if same == 0 || stopped == 0 {
			t.Error("nothing was taken away, or all")
		}
	}
}
