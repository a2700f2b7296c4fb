package loader

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func gzipWriter(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

const libSource = `
static int hidden(int x) { return x * 3; }
int counter = 7;
int *pointer = &counter;
int exported(int x) { return hidden(x) + *pointer; }
`

// elfFile returns a shared library as gcc makes it, with more flags if given.
func elfFile(t testing.TB, flags []string) []byte {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "l.c"), filepath.Join(dir, "l.so")
	if err := os.WriteFile(src, []byte(libSource), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", out, src}, flags...)
	if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
