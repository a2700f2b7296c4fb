package managed

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

var cuts = flag.Int("cuts", 300, "how often TestCutAndClosed cuts and closes a dump")

// A dump that is cut while it is walked on 8 goroutines, or closed, ends no
// program; what the walks still find is what they found before, and nothing is
// left behind.
func TestCutAndClosed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts mappings by /proc")
	}
	v := newVictim(t, "net10-crash-kernel")
	data := editable(t, "net10-crash-kernel").Bytes()
	path := filepath.Join(t.TempDir(), "core")
	write := func() {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	maps, files := held(t, path)
	rng := rand.New(rand.NewPCG(7, 9))
	lost, whole := 0, 0
	var ended atomic.Int64
	for i := range *cuts {
		write()
		p, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan *Session, 1)
		at, wait, closes := rng.IntN(len(data)), time.Duration(rng.IntN(3000))*time.Microsecond, i%2 == 1
		var all sync.WaitGroup
		all.Go(func() {
			s := Open(p, nil)
			opened <- s
			var walks sync.WaitGroup
			for g := range 8 {
				walks.Go(func() {
					w := s.NewWalker()
					var frames []Frame
					for k := range p.Threads {
						var stop unwind.Stop
						frames, stop = w.Walk(frames[:0], &p.Threads[(k+g)%len(p.Threads)])
						if stop.Reason == unwind.FileLost {
							ended.Add(1)
						}
					}
				})
			}
			walks.Wait()
		})
		time.Sleep(wait)
		if closes {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Truncate(path, int64(at)); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		s := <-opened
		// What is walked now agrees with the whole dump, as far as it goes.
		v.compare(s, "cut")
		cut := false
		for _, w := range append(p.Problems(), s.Warnings...) {
			cut = cut || w.Code == "file_lost"
		}
		if cut {
			lost++
		} else {
			whole++
		}
		p.Close()
	}
	t.Logf("%d dumps lost bytes, %d did not notice or were closed; %d walks ended so", lost, whole, ended.Load())
	for n := range 100 {
		runtime.GC()
		m, f := held(t, path)
		if m <= maps+4 && f <= files {
			break
		}
		if n == 99 {
			t.Errorf("%d mappings, %d at first; %d descriptors, %d at first", m, maps, f, files)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if b, _ := os.ReadFile("/proc/self/maps"); strings.Contains(string(b), path) {
		t.Error("the dump is still mapped")
	}
}

// held counts this program's mappings of dumps and empty ones, and its
// descriptors. Mappings of the heap come and go.
func held(t *testing.T, path string) (maps, files int) {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 5 && f[1] == "r--p" || strings.Contains(line, path) {
			maps++
		}
	}
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && err != io.EOF {
		t.Skip(err)
	}
	return maps, len(names) - 1
}
