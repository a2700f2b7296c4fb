package clr

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// entryPairs returns the pairs of the runtime's map of entry points at table.
func (r *Runtime) entryPairs(table arch.Addr) (pairs map[arch.Addr]arch.Addr) {
	l := &r.codeLayout
	pairs = map[arch.Addr]arch.Addr{}
	buckets, _ := r.word(field(table, l.HashBuckets))
	n, _ := r.u32(arch.Addr(buckets))
	for i := range n {
		b := arch.Addr(buckets) + arch.Addr(l.BucketSize)*arch.Addr(1+i)
		for slot := range arch.Addr(4) {
			k, ok1 := r.word(field(b, l.BucketKeys) + 8*slot)
			v, ok2 := r.word(field(b, l.BucketValues) + 8*slot)
			if ok1 && ok2 && k > 1 { // 0 is empty, 1 was deleted
				pairs[arch.Addr(k)] = arch.Addr(v << 1)
			}
		}
	}
	return pairs
}

// TestEntryMap holds the names that the tables of an image give to its code
// against all that the runtime's maps of entry points have: each method that was
// run of the recorded processes, instantiations among them.
func TestEntryMap(t *testing.T) {
	type tally struct{ methods, instances, refused, wrong, unread int }
	for _, name := range []string{"net10-r2r-x64/normal", "net10-scenarios-x64/gcore", "net10-r2r-arm64/dump", "net10-callbacks-x64/dump", "net10-composite-x64/normal", "net9-scenarios-x64/normal"} {
		dump := corpus.Path(t, filepath.Dir(name), filepath.Base(name)+".zst")
		p, err := loader.Open(dump, &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
		if err != nil {
			t.Fatal(err)
		}
		rts, warns := Open(p)
		if len(rts) != 1 {
			t.Fatalf("%s: %v", name, warns)
		}
		r := rts[0]
		var sum tally
		r.sections(func(s rangeSection) bool {
			if s.r2r == 0 {
				return true
			}
			info, _ := r.word(field(s.r2r, r.codeLayout.ModuleR2R))
			whole, _ := r.word(field(arch.Addr(info), r.codeLayout.R2RComposite))
			for start, md := range r.entryPairs(field(arch.Addr(whole), r.codeLayout.R2REntries)) {
				if !s.span.Has(start) {
					continue
				}
				sum.methods++
				want, err := r.MethodAt(md)
				if err != nil {
					sum.unread++ // createdump leaves out what it did not walk
					continue
				}
				known, _ := r.CodeAt(start)
				c := Code{Code: code.Code{Kind: code.ReadyToRun, Body: known.Body}, Base: known.Base, Unwind: known.Unwind, Header: known.Header}
				r.CompleteCode(&c)
				if c.Row == 0 {
					sum.refused++
					continue
				}
				if c.Instance != 0 {
					sum.instances++
				}
				got, err := r.MethodOf(&c)
				if c.Method == 0 {
					got.ID = want.ID
				}
				if err != nil || c.Start != start || c.Method != 0 && c.Method != md || c.Funclet || !sameMethod(&got, &want) {
					sum.wrong++
					t.Errorf("%s: %v is\n%+v, by the tables of its image\n%+v, %v", name, start, want, got, err)
				}
				if got, ok := r.entryNamed(&known.Code); !ok || !sameMethod(&got, &want) {
					t.Errorf("%s: %v is\n%+v, by its start in the tables of its image\n%+v, %v", name, start, want, got, ok)
				}
			}
			return true
		})
		t.Logf("%s: %+v", name, sum)
		if composite := strings.Contains(name, "composite"); sum.methods < 500 || composite && sum.refused > sum.methods/20 || !composite && (sum.instances == 0 || sum.refused > sum.methods/50) {
			t.Errorf("%s: too few are compared", name)
		}
		p.Close()
	}
}

// sameMethod compares methods, of which got may have ? for a type.
func sameMethod(got, want *code.Method) bool {
	types := func(a, b []string) bool {
		return slices.EqualFunc(a, b, func(a, b string) bool { return a == b || strings.Contains(a, "?") })
	}
	return got.ID == want.ID && got.Token == want.Token && got.Name == want.Name && got.Module == want.Module &&
		types(got.TypeArgs, want.TypeArgs) && types(got.MethodArgs, want.MethodArgs) && types(got.Params, want.Params)
}
