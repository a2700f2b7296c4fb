package clr

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A fixture is a trimmed dump of testdata/dumps, which tests change.
type fixture struct {
	t    testing.TB
	core *coreedit.Core
}

func readFixture(t testing.TB, name string) *fixture {
	t.Helper()
	c, err := coreedit.Read(filepath.Join("..", "..", "testdata", "dumps", name, "core.zst"))
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, c}
}

// edited opens the fixture as change makes it; nil leaves it as it is. The fixture
// itself stays as it was.
func (f *fixture) edited(change func(c *coreedit.Core)) *Runtime {
	f.t.Helper()
	c := f.core.Clone()
	if change != nil {
		change(c)
	}
	path := filepath.Join(f.t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		f.t.Fatal(err)
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.Close() })
	rts, warns := Open(p)
	if len(rts) != 1 {
		f.t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	return rts[0]
}

// set opens the fixture with the word at a overwritten.
func (f *fixture) set(a arch.Addr, v uint64) *Runtime {
	f.t.Helper()
	return f.edited(func(c *coreedit.Core) {
		if err := c.SetWord(uint64(a), v); err != nil {
			f.t.Fatal(err)
		}
	})
}

// without opens the fixture with the n bytes at a taken away.
func (f *fixture) without(a arch.Addr, n uint64) *Runtime {
	f.t.Helper()
	return f.edited(func(c *coreedit.Core) { c.Hole(uint64(a), n) })
}

// threads returns the threads of r; the list must be whole.
func threadsOf(t testing.TB, r *Runtime) []code.Thread {
	t.Helper()
	ts, warns := r.Threads()
	if len(ts) == 0 || len(warns) > 0 {
		t.Fatalf("%d threads, %v", len(ts), warns)
	}
	return ts
}

// framesOf returns the explicit Frames of t.
func framesOf(r *Runtime, t *code.Thread) (fs []Frame) {
	p := r.Replay()
	for a := t.Frame; a != code.EndOfFrames; {
		f, missing := p.FrameAt(a)
		if missing != 0 || f.Next <= a {
			break
		}
		fs = append(fs, f)
		a = f.Next
	}
	return fs
}
