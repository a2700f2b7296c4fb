package managed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// fixtures are the trimmed dumps in testdata/dumps. They hold all that their
// stacks need, so no file is looked for.
var fixtures = []string{"net10-hello", "net10-busy-a", "net10-busy-b", "net10-scenarios", "net10-singlefile", "net10-r2r", "net10-crash-kernel", "net10-hello-arm64"}

func fixturePath(name string) string {
	return filepath.Join("..", "testdata", "dumps", name, "core.zst")
}

// openFixture opens one of fixtures.
func openFixture(t testing.TB, name string) *Session {
	t.Helper()
	p, err := loader.Open(fixturePath(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return Open(p, nil)
}

// coreclr returns the first runtime of s, a CoreCLR.
func coreclr(s *Session) *clr.Runtime { return s.Runtimes[0].(*clr.Runtime) }

// editable reads a fixture to be changed.
func editable(t testing.TB, name string) *coreedit.Core {
	t.Helper()
	c, err := coreedit.Read(fixturePath(name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openEdit opens c; the session is used by with only.
func openEdit(t testing.TB, c *coreedit.Core, with func(*Session)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	openPath(t, path, with)
}

func openPath(t testing.TB, path string, with func(*Session)) {
	t.Helper()
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	with(Open(p, nil))
}

// openCase opens the dump of a recorded case.
func openCase(t testing.TB, name, dump string) *Session {
	t.Helper()
	p, err := loader.Open(corpus.Path(t, name, dump), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return Open(p, nil)
}

func threadOf(t testing.TB, s *Session, tid uint32) *loader.Thread {
	t.Helper()
	for i := range s.Process.Threads {
		if d := &s.Process.Threads[i]; d.ID == tid {
			return d
		}
	}
	t.Fatalf("no thread %d", tid)
	return nil
}

// A stack is the result of one walk.
type stack struct {
	frames []Frame
	stop   unwind.Stop
}

// walkAll walks every thread, one after the other.
func walkAll(s *Session) []stack {
	w := s.NewWalker()
	out := make([]stack, len(s.Process.Threads))
	for i := range out {
		out[i].frames, out[i].stop = w.Walk(nil, &s.Process.Threads[i])
	}
	return out
}

func placeOf(f *Frame) place { return place{f.PC.Addr, f.SP} }
