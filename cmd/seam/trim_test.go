package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// fixture unpacks a dump that ships with the tests.
func fixture(t *testing.T, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("..", "..", "testdata", "dumps", name, "core.zst"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	core, err := r.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// threadsOf returns the list of threads in the JSON that seam stacks writes of a core.
func threadsOf(t *testing.T, core []byte) string {
	t.Helper()
	status, out, errs := seam(t, "", core, nil, "stacks", "--format", "json", "--images", "none", "-")
	if status != 0 || !json.Valid([]byte(out)) {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	_, out, _ = strings.Cut(out, "\n \"threads\": ")
	out, _, _ = strings.Cut(out, "\n \"warnings\": ")
	return out
}

// pagesOf returns the file offsets of the pages of memory that a core has.
func pagesOf(t *testing.T, core []byte) (at []uint64) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		for o := uint64(0); o < p.Filesz; o += 4096 {
			at = append(at, p.Off+o)
		}
	}
	return at
}

// TestTrimAgain: a trimmed dump that is trimmed again has the same stacks. It holds
// the pages that were read, as many as trim says, and no others.
func TestTrimAgain(t *testing.T) {
	for _, name := range []string{"net10-hello", "net10-singlefile", "net10-crash-kernel"} {
		core := fixture(t, name)
		status, out, said := seam(t, "", core, nil, "trim", "--images", "none", "-", "-")
		m := regexp.MustCompile(`^(\d+) pages read, (\d+) of them at hand; (\d+) bytes`).FindStringSubmatch(said)
		if status != 0 || m == nil {
			t.Fatalf("%s: exit status %d: %s", name, status, said)
		}
		again := []byte(out)
		if threadsOf(t, core) != threadsOf(t, again) {
			t.Errorf("%s: other threads", name)
		}
		pages := len(pagesOf(t, again))
		if strconv.Itoa(pages) != m[2] || strconv.Itoa(len(again)) != m[3] {
			t.Errorf("%s: %d pages in %d bytes; trim said %s", name, pages, len(again), said)
		}
		read, _ := strconv.Atoi(m[1])
		if limit := read * 4096 * 12 / 10; pages > read || len(again) > limit+64<<10 {
			t.Errorf("%s: %d pages, %d bytes of core for %d pages that were read", name, pages, len(again), read)
		}
	}
}

// TestTrimZeroed: nearly every page that trim keeps is needed: zeros in its place
// change the threads. Few pages are not, such as one that a search only passed
// over. Whichever page is zeroed, seam stacks ends well.
func TestTrimZeroed(t *testing.T) {
	core := fixture(t, "net10-hello")
	want := threadsOf(t, core)
	tried, same := 0, 0
	for i, at := range pagesOf(t, core) {
		page := core[at : at+4096]
		if i%5 != 0 || bytes.Count(page, []byte{0}) == len(page) {
			continue
		}
		old := bytes.Clone(page)
		clear(page)
		tried++
		if threadsOf(t, core) == want {
			same++
		}
		copy(page, old)
	}
	if tried < 30 || same*10 > tried {
		t.Errorf("%d of %d pages may be zeroed with no effect", same, tried)
	}
}
