package managed

import (
	"testing"

	"github.com/seamwalk/seam/loader"
)

// BenchmarkWalk walks all threads of a program with every kind of stack, its
// deepest 5,000 frames, over and over with one walker.
func BenchmarkWalk(b *testing.B) {
	for _, name := range []string{"net10-scenarios", "net10-busy-a"} {
		b.Run(name, func(b *testing.B) {
			s := openFixture(b, name)
			w, n := s.NewWalker(), 0
			var frames []Frame
			all := func(threads []loader.Thread) {
				for i := range threads {
					frames, _ = w.Walk(frames[:0], &threads[i])
					n += len(frames)
				}
			}
			all(s.Process.Threads)
			n = 0
			b.ReportAllocs()
			for b.Loop() {
				all(s.Process.Threads)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
			b.ReportMetric(float64(n)/float64(b.N), "frames/op")
		})
	}
}
