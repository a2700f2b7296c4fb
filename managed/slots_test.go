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
		core, whole := editable(t, name), openFixture(t, name)
		file, err := os.Create(filepath.Join(t.TempDir(), "core"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(core.Bytes()); err != nil {
			t.Fatal(err)
		}
		tries, resumed := 0, 0
		for i, st := range walkAll(whole) {
			if len(whole.Process.Threads) > some && i%4 != 0 {
				continue
			}
			h := &holes{t: t, tid: whole.Process.Threads[i].ID, want: st, known: map[place]bool{}}
			for k := range st.frames {
				h.known[placeOf(&st.frames[k])] = true
			}
			for k := 1; k < min(len(st.frames), deep); k++ {
				c, slot := core.Holes(), st.frames[k].SP-8
				c.Hole(uint64(slot), 8)
				if err := c.WriteHoles(file); err != nil {
					t.Fatal(err)
				}
				openPath(t, file.Name(), func(s *Session) {
					tries++
					h.check(s, arch.Span{Lo: slot, Hi: slot + 8})
					if h.walk(s).stop == st.stop {
						resumed++
					}
				})
			}
		}
		t.Logf("%s: %d return addresses; behind %d the walk goes on to the end", name, tries, resumed)
	}
}
