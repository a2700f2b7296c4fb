package profiler

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

var everyHole = flag.Bool("holes", false, "TestReplayHoles: take every page of the shipped dumps that a replay reads, and not a sample")

// fixtures are the trimmed dumps in testdata/dumps. They hold all that their
// stacks need, so no file is looked for.
var fixtures = []string{"net10-hello", "net10-busy-a", "net10-busy-b", "net10-scenarios", "net10-singlefile", "net10-r2r", "net10-crash-kernel", "net10-hello-arm64"}

func fixturePath(name string) string {
	return filepath.Join("..", "..", "testdata", "dumps", name, "core.zst")
}

// openFixture opens one of fixtures.
func openFixture(t testing.TB, name string) *managed.Session {
	t.Helper()
	p, err := loader.Open(fixturePath(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return managed.Open(p, nil)
}

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
func openEdit(t testing.TB, c *coreedit.Core, with func(*managed.Session)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	openPath(t, path, with)
}

func openPath(t testing.TB, path string, with func(*managed.Session)) {
	t.Helper()
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	with(managed.Open(p, nil))
}
