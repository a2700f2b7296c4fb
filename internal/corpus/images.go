package corpus

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// unpacked is where Images has unpacked the image files, once a test binary.
var unpacked = sync.OnceValues(unpack)

// source is the folder of packed image files that unpacked reads.
var source string

// Images returns a folder for [loader.DirFinder] with the files that the recorded
// dumps name, by identity. They are unpacked into the system's folder for
// temporary files, where the tests of other packages find them again.
func Images(t testing.TB) string {
	t.Helper()
	source = Path(t, "images")
	dir, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func unpack() (string, error) {
	dir := filepath.Join(os.TempDir(), "seam-corpus-images")
	return dir, filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimSuffix(rel, ".zst"))
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		return unpackFile(path, to)
	})
}

// unpackFile writes the file at path to to, under another name until it is whole:
// several test binaries run at a time.
func unpackFile(path, to string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".unpacking-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	var src io.Reader = in
	if strings.HasSuffix(path, ".zst") {
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(1<<31), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer z.Close()
		src = z
	}
	if _, err := io.Copy(out, src); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

// dumpName matches the files of a case that are dumps with all that a walk reads.
var dumpName = regexp.MustCompile(`^(dump(-\d+)?|normal|gcore|core|kernel|mini|heap)\.zst$`)

// Dumps returns the absolute paths of the recorded dumps whose path in the corpus
// matches pattern, in order; "" matches all.
func Dumps(t testing.TB, pattern string) (paths []string) {
	t.Helper()
	root, want := Path(t), regexp.MustCompile(pattern)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err == nil && !e.IsDir() && dumpName.MatchString(e.Name()) && want.MatchString(filepath.ToSlash(rel)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
