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
	return built(t, libSource, append([]string{"-shared", "-fPIC"}, flags...)...)
}

// built returns the ELF file that gcc makes of C source.
func built(t testing.TB, source string, flags ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(compiled(t, source, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compiled has gcc make an ELF file of C source, and returns its path.
func compiled(t testing.TB, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("gcc", append([]string{"-g", "-O1", "-Wl,--build-id=sha1", "-o", out, src}, flags...)...).CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, msg)
	}
	return out
}
