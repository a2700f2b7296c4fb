package clr

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/seamwalk/seam/loader"
)

func layoutText(t *testing.T, name string) *contract {
	t.Helper()
	text, err := layouts.ReadFile("layouts/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseContract(text, make([]uint64, maxPointers))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

// TestUnrecordedText holds the text of .NET 9 on 64-bit Arm, of which there is no
// recording, against the descriptors of .NET 10: where 9 and 10 agree on x86-64, they
// agree there.
func TestUnrecordedText(t *testing.T) {
	nine, ten := layoutText(t, "net9-linux-amd64"), layoutText(t, "net10-linux-amd64")
	arm9, arm10 := layoutText(t, "net9-linux-arm64"), layoutText(t, "net10-linux-arm64")
	same, moved := 0, 0
	for name, at := range nine.offsets {
		at10, ok1 := ten.offsets[name]
		on9, ok2 := arm9.offsets[name]
		on10, ok3 := arm10.offsets[name]
		switch {
		case !ok1 || !ok2 || !ok3:
		case at != at10:
			moved++
		case on9 != on10:
			t.Errorf("%s is at %d in .NET 10, and at %d in the text of 9", name, on10, on9)
		default:
			same++
		}
	}
	if same < 100 || moved == 0 {
		t.Errorf("%d fields are compared, %d differ by release", same, moved)
	}
	if !arm9.unrecorded || nine.unrecorded || arm10.unrecorded {
		t.Error("the text of .NET 9 on 64-bit Arm is the one that nothing confirms")
	}
}

// TestTextsAreWhole: each text has what its release's code is read by.
func TestTextsAreWhole(t *testing.T) {
	names, err := fs.Glob(layouts, "layouts/net*.json")
	if err != nil || len(names) < 7 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		c := layoutText(t, strings.TrimSuffix(strings.TrimPrefix(name, "layouts/"), ".json"))
		release, _, _ := strings.Cut(strings.TrimPrefix(name, "layouts/net"), "-")
		row, _ := releaseOf(release)
		if refused := row.lay(c, ownRow); len(refused) > 0 {
			t.Errorf("%s: %v of the row are not believed beside it", name, refused)
		}
		var l codeLayout
		if lacks := c.fill(&l); len(lacks) > 0 {
			t.Errorf("%s lacks %v", name, lacks)
		}
		var threads threadLayout
		if lacks := c.fill(&threads); len(lacks) > 0 {
			t.Errorf("%s lacks %v", name, lacks)
		}
	}
}

// TestUnrecorded: who opens a runtime that no recording confirms is told so.
func TestUnrecorded(t *testing.T) {
	r := fakeRuntime(t, nil)
	r.data, r.proc = fakeContract(t), &loader.Process{}
	r.Version, r.Image = "9.0.20", &loader.Image{ID: loader.ImageID{Name: "libcoreclr.so"}}
	if err := r.layouts(); err != nil {
		t.Fatal(err)
	}
	told := func() bool {
		for _, w := range r.warnings() {
			if w.Code == "runtime_unrecorded" {
				return strings.Contains(w.Text, ".NET 9.0.20")
			}
		}
		return false
	}
	if told() {
		t.Error("told of a runtime that recordings confirm")
	}
	r.data.unrecorded = true
	if !told() {
		t.Error("not told of layouts written by hand")
	}
	r.data.unrecorded = false
	r.proc.Images = []*loader.Image{{ID: loader.ImageID{Name: "ld-musl-x86_64.so.1"}}}
	if !told() {
		t.Error("not told of musl")
	}
}
