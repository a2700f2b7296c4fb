package managed

import (
	"testing"

	"github.com/seamwalk/seam/unwind"
)

// A stack overflow, whose handler runs on a stack of its own. The process said
// of itself, on its standard error, that Crash.Level was repeated 261,932
// times; Run and Main called it. The dump ends the stack of the main thread
// in the host, where createdump's limit cut it.
func TestStackOverflow(t *testing.T) {
	s := openCase(t, "net10-crash-overflow-x64", "mini.zst")
	w := s.NewWalker()
	managed, gaps, repeated := 0, 0, 0
	for ok := w.Start(&s.Process.Threads[0]); ok; ok = w.Next() {
		f := w.Frame()
		switch {
		case f.Kind == Gap:
			gaps++
		case f.Kind == Managed:
			if managed++; managed > 1 && f.PC.Addr == 0x7f9e592a268e {
				repeated++
			}
		}
	}
	if gaps != 0 || managed != 261_934 || repeated != 261_931 {
		t.Errorf("%d gaps, %d managed frames, %d of them the repeated call; want 0, 261934, 261931", gaps, managed, repeated)
	}
	if stop := w.Stop(); stop.Reason != unwind.MemoryMissing {
		t.Errorf("the stop is %+v", stop)
	}
}
