package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/golden"
)

// dumps returns the folders of the dumps that ship with the tests.
func dumps(t *testing.T) (names []string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join("..", "..", "testdata", "dumps", "*", "core.zst"))
	if err != nil || len(list) < 5 {
		t.Fatalf("%d dumps, %v", len(list), err)
	}
	for _, path := range list {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
}

// TestFixtures: each dump that ships gives the stacks of its want.txt, which
// somebody has read frame by frame and found right. No file is missing.
func TestFixtures(t *testing.T) {
	for _, name := range dumps(t) {
		dir := filepath.Join("..", "..", "testdata", "dumps", name)
		status, out, errs := seam(t, dir, nil, nil, "stacks", "--images", "none", "--strict", "-v", "--fold", "core.zst")
		if status != 0 {
			t.Errorf("%s: exit status %d: %s", name, status, errs)
		}
		golden.Compare(t, "../../../testdata/dumps/"+name+"/want.txt", []byte(out))
		core, err := os.ReadFile(filepath.Join(dir, "core.zst"))
		if err != nil {
			t.Fatal(err)
		}
		about, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if sum := fmt.Sprintf("%x", sha256.Sum256(core)); !strings.Contains(string(about), sum) {
			t.Errorf("%s: README.md is of another core.zst than that of SHA-256 %s (%v)", name, sum, err)
		}
	}
}

// stackJSON has the fields of stacks' JSON that TestFixturesJSON looks at.
type stackJSON struct {
	Threads []struct {
		TID    int
		Frames []struct{ Kind, PC, SP string }
		Stop   struct {
			Reason   string
			Complete bool
		}
	}
}

// TestFixturesJSON: the JSON of each dump that ships can be parsed, its stacks are
// complete, and docs/json.md explains every field in it.
func TestFixturesJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	stops, err := os.ReadFile(filepath.Join("..", "..", "docs", "stops.md"))
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`[{ ]"([a-z_]+)": `)
	registers := regexp.MustCompile(`"registers": \{[^}]*\}`)
	for _, name := range dumps(t) {
		dir := filepath.Join("..", "..", "testdata", "dumps", name)
		for _, command := range []string{"stacks", "info", "methods", "seed"} {
			status, out, errs := seam(t, dir, nil, nil, command, "--images", "none", "--format", "json", "core.zst")
			if status != 0 || !json.Valid([]byte(out)) {
				t.Fatalf("%s %s: exit status %d, %d bytes: %s", command, name, status, len(out), errs)
			}
			seen := map[string]bool{}
			for _, m := range key.FindAllStringSubmatch(registers.ReplaceAllString(out, ""), -1) {
				if k := m[1]; !seen[k] && !strings.Contains(string(doc), "`"+k+"`") {
					t.Errorf("%s: docs/json.md does not explain %q", command, k)
				}
				seen[m[1]] = true
			}
			if command != "stacks" {
				continue
			}
			var s stackJSON
			if err := json.Unmarshal([]byte(out), &s); err != nil {
				t.Fatal(err)
			}
			for _, th := range s.Threads {
				last := uint64(0)
				for i, f := range th.Frames {
					sp, err := strconv.ParseUint(f.SP, 0, 64)
					if err != nil || sp <= last {
						t.Errorf("%s: thread %d, frame %d: sp %s", name, th.TID, i, f.SP)
					}
					last = sp
				}
				if !th.Stop.Complete || !strings.Contains(string(stops), "`"+th.Stop.Reason+"`") {
					t.Errorf("%s: thread %d stops: %s", name, th.TID, th.Stop.Reason)
				}
			}
		}
	}
}

// TestFixturesPrivate: the dumps that ship hold neither the environment nor
// paths of the machines that they were made on. The application's folder is
// in the names of its images.
func TestFixturesPrivate(t *testing.T) {
	private := regexp.MustCompile(`[A-Z_][A-Z0-9_]{3,}=[ -~]|(?:[A-Z0-9_]\x00){4,}=\x00[ -~]\x00|/nix/|/home/|/root/|/Users/`)
	for _, name := range dumps(t) {
		if at := private.FindIndex(fixture(t, name)); at != nil {
			t.Errorf("%s: %q", name, fixture(t, name)[at[0]:at[1]])
		}
	}
}
