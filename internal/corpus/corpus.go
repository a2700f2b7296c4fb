// Package corpus finds recorded dumps, for tests. They are too large to be a
// part of the repository: they lie in $SEAM_CORPUS, or else in
// shared/corpus beside the checkout. A test that needs them is skipped where
// they are not.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the absolute path of a file or folder of the corpus, given by
// its elements, or skips the test.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("SEAM_CORPUS")
	if dir == "" {
		dir = filepath.Join(checkout(t), "..", "shared", "corpus")
	}
	path, err := filepath.Abs(filepath.Join(append([]string{dir}, elem...)...))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("needs recorded dumps (SEAM_CORPUS): %v", err)
	}
	return path
}

// checkout returns the root of the repository: tests run in their package's folder.
func checkout(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	t.Fatal("the test does not run in a checkout")
	return ""
}
