package stacks

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// Of a dump without its files, Summary names the files that would give names, with
// as many frames as have none.
func TestMissing(t *testing.T) {
	p, err := loader.Open(corpus.Path(t, filepath.Join("net10-hello-x64", "normal.zst")), &loader.Options{Find: loader.MultiFinder()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stacks := Of(managed.Open(p, nil), nil)
	unnamed, all := map[string]int{}, 0
	for th, err := range stacks.All() {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range th.Frames {
			if f.Kind == Native && f.Function == "" {
				unnamed[f.Module]++
				all++
			}
		}
	}
	s := stacks.Summary()
	if all == 0 || s.Counts.Unnamed < all {
		t.Errorf("%d frames have no name, the summary counts %d", all, s.Counts.Unnamed)
	}
	for _, m := range s.Missing {
		if n := unnamed[m.Name]; m.Unnamed != n && m.Name != "[vdso]" || m.ID == "" {
			t.Errorf("%s (%s): %d frames without a name, want %d", m.Name, m.ID, m.Unnamed, n)
		}
		delete(unnamed, m.Name)
	}
	if len(unnamed) > 0 {
		t.Errorf("not among the missing: %v", unnamed)
	}
	if !slices.IsSortedFunc(s.Missing, func(a, b Missing) int { return cmp.Or(b.Stops-a.Stops, b.Unnamed-a.Unnamed) }) {
		t.Errorf("not by what they would tell: %+v", s.Missing)
	}
}
