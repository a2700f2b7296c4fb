package profiler

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeWalks makes testdata/walks anew out of the recorded cases.
var writeWalks = flag.Bool("walks", false, "write testdata/walks out of the recorded cases again")

// A fixtureWalk is what the real DoStackSnapshot did in one call: of each
// callback function, ip, stack pointer and size of the context.
type fixtureWalk struct {
	TID   uint32
	Mode  string
	Flags uint32
	HR    string
	Calls []string
}

// maxFixtureCalls leaves the few very deep stacks out of the files.
const maxFixtureCalls = 40

// TestContractFixtures replays, over the trimmed dumps in testdata/dumps, calls
// that the runtime of the same process answered.
func TestContractFixtures(t *testing.T) {
	for name, walks := range map[string]int{"net10-hello": 8, "net10-scenarios": 50, "net10-r2r": 50} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "walks", name+".json")
			n := snapshotter(t, openFixture(t, name))
			if *writeWalks {
				b, _ := json.MarshalIndent(recordedWalks(t, n, name+"-x64"), "", " ")
				if err := os.WriteFile(path, append(b, '\n'), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want []fixtureWalk
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			if len(want) < walks {
				t.Errorf("%d walks", len(want))
			}
			for _, w := range want {
				mode, err := ParseMode(w.Mode)
				if err != nil {
					t.Fatal(err)
				}
				got := w
				got.Calls = nil
				got.HR = n.Do(Request{TID: w.TID, Mode: mode, Flags: w.Flags}, func(c Call) HRESULT {
					regs, _ := c.Registers()
					got.Calls = append(got.Calls, fmt.Sprintf("%#x %v %v %d", uint64(c.Function), c.IP, n.spOf(regs), c.ContextSize))
					return S_OK
				}).String()
				if d := cmp.Diff(w, got); d != "" {
					t.Errorf("thread %d, %v (-the runtime +we):\n%s", w.TID, n.Why(), d)
				}
			}
		})
	}
}

// recordedWalks returns the walks of all threads in the instant of the dump.
func recordedWalks(t *testing.T, n *Snapshotter, name string) (out []fixtureWalk) {
	r := readRecord(t, name)
	for _, w := range r.walks {
		req, abort, ok := r.request(w)
		if !ok || abort != 0 || req.Mode != Suspended || w.Flags != COR_PRF_SNAPSHOT_REGISTER_CONTEXT || len(w.frames) != w.Frames || w.Frames > maxFixtureCalls {
			continue
		}
		f := fixtureWalk{TID: w.OSTID, Mode: req.Mode.String(), Flags: w.Flags, HR: w.HR}
		for _, c := range w.frames {
			f.Calls = append(f.Calls, fmt.Sprintf("%s %s %s %d", c.Func, c.IP, c.SP, c.CtxSize))
		}
		out = append(out, f)
	}
	return out
}
