package managed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// TestEveryReturnAddress takes return addresses off the stacks of the shipped
// dumps, one at a time: what is behind it is found by the frame pointer or the
// runtime's Frames, or not at all.
func TestEveryReturnAddress(t *testing.T) {
	t.Parallel()
	const (
		deep = 40 // of each stack; behind that come recursions
		some = 50 // threads: of a dump with more, every fourth
	)
	for _, name := range fixtures {
		whole := openFixture(t, name)
		if whole.Process.Arch.LR != arch.NoReg {
			continue // where it lies, only the rule tells
		}
		h := &holes{t: t, core: editable(t, name), want: answersOf(whole)}
		file, err := os.Create(filepath.Join(t.TempDir(), "core"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(h.core.Bytes()); err != nil {
			t.Fatal(err)
		}
		for i := range whole.Process.Threads {
			if len(whole.Process.Threads) > some && i%4 != 0 {
				continue
			}
			frames := h.want[whole.Process.Threads[i].ID].frames
			for k := 1; k < min(len(frames), deep); k++ {
				h.try(file, frames[k].sp-8, 8)
			}
		}
		t.Logf("%s: %d return addresses, of which %d change a stack", name, h.tries, h.changes)
	}
}
