package managed

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// cut makes testdata/hello anew out of a recorded case.
var cut = flag.Bool("cut", false, "cut testdata/hello out of the recorded case again")

// The fixture holds what replays and walks of these threads read, and what the
// real runtime said of them. The main thread is not among them: the page that
// its stack begins in holds the environment.
var fixtureThreads = []string{"catch", "reverse-delegate", "dynamic-frame-deep", "fault-null"}

const fixture = "testdata/hello"

func TestContractFixture(t *testing.T) {
	if *cut {
		cutFixture(t)
	}
	n := snapshotter(t, openFixture(t))
	asked := 0
	b, err := os.ReadFile(filepath.Join(fixture, "walks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var walks []fixtureWalk
	if err := json.Unmarshal(b, &walks); err != nil {
		t.Fatal(err)
	}
	for _, w := range walks {
		var got []string
		mode, err := ParseMode(w.Mode)
		if err != nil {
			t.Fatal(err)
		}
		hr := n.Do(Request{TID: w.TID, Mode: mode, Flags: w.Flags}, func(c Call) HRESULT {
			got = append(got, describeCall(n, &c))
			return S_OK
		})
		if hr.String() != w.HR || strings.Join(got, "\n") != strings.Join(w.Calls, "\n") {
			t.Errorf("%s: %v, want %s\n got %v\nwant %v", w.Walk, hr, w.HR, got, w.Calls)
		}
		asked++
	}
	if asked < 2*len(fixtureThreads) {
		t.Errorf("%d walks", asked)
	}
}

// A fixtureWalk is a recorded call.
type fixtureWalk struct {
	Walk, Mode, HR string
	TID, Flags     uint32
	Calls          []string
}

func describeCall(n *Snapshotter, c *Call) string {
	regs, _ := c.Registers()
	return fmt.Sprintf("%#x %v %v %d", uint64(c.Function), c.IP, n.spOf(regs), c.ContextSize)
}

func openFixture(t testing.TB) *Session {
	t.Helper()
	p, err := loader.Open(filepath.Join(fixture, "core.zst"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return Open(p, nil)
}

func cutFixture(t *testing.T) {
	const name = "net10-hello-x64"
	p, err := loader.Open(filepath.Join(corpus(t), name, "normal.zst"), &loader.Options{Track: true, Find: loader.DirFinder(os.Getenv("SEAM_IMAGES"))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := Open(p, nil)
	n := snapshotter(t, s)
	r := readRecord(t, name)
	var walks []fixtureWalk
	for _, kept := range fixtureThreads {
		var tid uint32
		for id, at := range r.still {
			if at == kept {
				tid = id
			}
		}
		d := threadOf(t, s, tid)
		s.NewWalker().Walk(nil, d)
		n.FindSeed(d)
		for _, w := range r.walks {
			req, abort, ok := r.request(w)
			if w.OSTID != tid || !ok || abort != 0 || len(w.frames) != w.Frames || w.Frames == 0 || w.frames[0].SP == "" {
				continue
			}
			f := fixtureWalk{Walk: w.Walk, Mode: req.Mode.String(), HR: w.HR, TID: tid, Flags: w.Flags}
			for _, c := range w.frames {
				f.Calls = append(f.Calls, fmt.Sprintf("%s %s %s %d", c.Func, c.IP, c.SP, c.CtxSize))
			}
			walks = append(walks, f)
			n.Do(req, func(c Call) HRESULT {
				_, _ = n.rt.Describe(arch.Addr(c.Function))
				return S_OK
			})
		}
	}
	var core bytes.Buffer
	z, _ := zstd.NewWriter(&core, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if _, err := p.WriteTrimmed(z, loader.Kept{}); err != nil {
		t.Fatal(err)
	}
	z.Close()
	b, _ := json.MarshalIndent(walks, "", " ")
	for file, text := range map[string][]byte{"core.zst": core.Bytes(), "walks.json": append(b, '\n')} {
		if err := os.WriteFile(filepath.Join(fixture, file), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
