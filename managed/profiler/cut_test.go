package profiler

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

var cuts = flag.Int("cuts", 100, "how often TestCutAndClosed cuts and closes a dump")

// A dump that is cut or closed while threads are replayed on 4 goroutines ends no
// program; a replay that nothing disturbed makes the callbacks of the whole dump,
// another one the first of them.
func TestCutAndClosed(t *testing.T) {
	want := map[uint32][]ViewFrame{}
	whole := openFixture(t, "net10-hello")
	n := snapshotter(t, whole)
	for i := range whole.Process.Threads {
		want[whole.Process.Threads[i].ID], _ = n.View(&whole.Process.Threads[i])
	}
	data := editable(t, "net10-hello").Bytes()
	path := filepath.Join(t.TempDir(), "core")
	rng := rand.New(rand.NewPCG(3, 5))
	replayed, short := 0, 0
	for i := range *cuts {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		at, wait := rng.IntN(len(data)), time.Duration(rng.IntN(6000))*time.Microsecond
		var mu sync.Mutex
		var all sync.WaitGroup
		all.Go(func() {
			s := managed.Open(p, nil)
			for range 4 {
				all.Go(func() {
					n, err := New(s)
					if err != nil {
						return // nothing of the runtime could be read
					}
					for k := range p.Threads {
						tid := p.Threads[k].ID
						view, _ := n.View(&p.Threads[k])
						bad := len(view) > len(want[tid])
						for j := range view {
							bad = bad || view[j].Frame.PC != want[tid][j].Frame.PC || view[j].Frame.Kind != want[tid][j].Frame.Kind
						}
						mu.Lock()
						if replayed++; len(view) < len(want[tid]) {
							short++
						}
						if bad {
							t.Errorf("thread %d: %d callbacks, %+v", tid, len(view), view)
						}
						mu.Unlock()
					}
				})
			}
		})
		time.Sleep(wait)
		if i%2 == 1 {
			err = p.Close()
		} else {
			err = os.Truncate(path, int64(at))
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Wait()
		p.Close()
	}
	t.Logf("%d replays, of which %d were cut short", replayed, short)
	if short == 0 || short == replayed {
		t.Error("no replay was disturbed, or every one")
	}
}
