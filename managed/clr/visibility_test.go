package clr

import (
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestVisibilityWithoutMethodDesc holds what other bytes tell of a method
// against its MethodDesc, for all that was compiled in the recorded dumps.
func TestVisibilityWithoutMethodDesc(t *testing.T) {
	all, heap, ordinary, refused := 0, 0, 0, 0
	for _, path := range corpus.Dumps(t, `^(net10|deep-dotnet|azmcp)`) {
		p, err := loader.Open(path, nil)
		if err != nil {
			continue // of Windows
		}
		rts, _ := Open(p)
		for _, r := range rts {
			rp := r.Replay()
			r.Compiled(func(m code.Compiled) bool {
				c, missing := r.CodeAt(m.Span.Lo)
				class, ok := r.methodClass(c.Method)
				if missing != 0 || c.Kind != code.JIT || !ok {
					return true
				}
				v, missing := rp.Visibility(&c)
				if missing != 0 {
					return true
				}
				all++
				if host := rp.hostHeap(&c); host != (v == NoMetadata) {
					t.Errorf("%s: %v: class %d, in a heap for dynamic methods: %v", path, m.Span.Lo, class, host)
				} else if host {
					heap++
				}
				switch is := rp.ordinary(c.Method); {
				case is && (v == Hidden || class == classPInvoke):
					t.Errorf("%s: %v: class %d, and an ordinary method by its place", path, m.Span.Lo, class)
				case is:
					ordinary++
				case v == Visible:
					refused++
				}
				return true
			})
			// No P/Invoke and no stub may seem ordinary, compiled or not.
			for _, code := range r.orphanIndex().methods {
				md := code.by
				if class, ok := r.methodClass(md); ok && (class == classPInvoke || class == classDynamic) && rp.ordinary(md) {
					t.Errorf("%s: the MethodDesc at %v of class %d seems ordinary", path, md, class)
				}
			}
		}
		p.Close()
	}
	t.Logf("%d methods: %d dynamic ones by their heap, %d ordinary ones by their place; %d are not told", all, heap, ordinary, refused)
	if all < 30000 || heap < 1000 || ordinary < 5000 {
		t.Error("too few")
	}
}
