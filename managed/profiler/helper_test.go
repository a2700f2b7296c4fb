package profiler

import (
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// Offsets in the Frame of a helper of .NET 8 and 9 on x86-64, written down here
// once more.
const (
	helperMethod   = 0x10
	helperAttribs  = 0x18
	helperEntry    = 0x28
	helperCaptured = 0x40 // six registers
	helperPointers = 0x70 // six of them
	helperRetAddr  = 0xa0 // 0: the caller has not been looked for yet
	helperUnwound  = 0xa8
)

// helperFrames returns the Frames of helpers on all threads, by thread.
func helperFrames(s *managed.Session) map[uint32][]arch.Addr {
	out := map[uint32][]arch.Addr{}
	for i := range s.Process.Threads {
		tid := s.Process.Threads[i].ID
		m, rt := s.Thread(tid)
		if m == nil {
			continue
		}
		for c := code.ChainOf(rt, m); ; {
			f, ok := c.Pop()
			if !ok {
				break
			}
			if strings.HasPrefix(clr.FrameOf(f).Kind.String(), "HelperMethodFrame") {
				out[tid] = append(out[tid], f.Addr)
			}
		}
	}
	return out
}

// TestLazyHelpers takes from the Frames of helpers what the runtime has found out
// of their callers, as if no walk had been made before the dump. What the Frames
// captured leads, by native frames, to the same callers: every recorded walk is
// made again. In net8-callbacks-x64 three Frames were never looked at.
func TestLazyHelpers(t *testing.T) {
	for _, c := range []struct {
		name, dump string
		frames     int // edited
		calls      int // repeated, of threads with such Frames
	}{
		{"net9-scenarios-x64", "normal.zst", 18, 210},
		{"net9-callbacks-x64", "dump.zst", 582, 921},
		{"net9-elt-slow-x64", "dump.zst", 81, 207},
		{"net9-transitions-x64", "dump.zst", 12, 36},
		{"net8-scenarios-x64", "normal.zst", 27, 290},
		{"net8-callbacks-x64", "dump.zst", 553, 906},
		{"net8-transitions-x64", "dump.zst", 12, 36},
	} {
		t.Run(c.name, func(t *testing.T) {
			var edits []edit
			frames := helperFrames(openCase(t, c.name, c.dump))
			for _, list := range frames {
				for _, f := range list {
					// Words that the runtime writes with the caller, and must not need.
					edits = append(edits, edit{f + helperRetAddr, 0}, edit{f + helperMethod, 0x4141})
					for off := arch.Addr(0x30); off < helperUnwound+6*8; off += 8 {
						if off < helperCaptured || off >= helperPointers && off != helperRetAddr {
							edits = append(edits, edit{f + off, 0x4141414141414141})
						}
					}
				}
			}
			n, r, calls := snapshotter(t, openEdited(t, c.name, c.dump, edits...)), readRecord(t, c.name), 0
			for _, w := range r.walks {
				if len(frames[w.OSTID]) == 0 {
					continue
				}
				diffs, ok := replay(n, r, w)
				if !ok {
					continue
				}
				if calls++; len(diffs) > 0 {
					t.Errorf("%s: %v (%v)", w.Walk, diffs[:min(3, len(diffs))], n.Why())
				}
			}
			if len(edits) != 16*c.frames || calls != c.calls {
				t.Errorf("%d words edited, want %d; %d calls, want %d", len(edits), 16*c.frames, calls, c.calls)
			}
		})
	}
}
