package clr

import (
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestPrecodes names every JIT-compiled method of recorded dumps by the precodes
// that lead to its code: as its header does, or not at all. That there are very
// many of them costs little, and that they are searched is not to be noted for a
// trim: what the search has found is.
func TestPrecodes(t *testing.T) {
	for _, path := range corpus.Dumps(t, `^net(8|9|10)-(scenarios|r2r)-|^azmcp`) {
		p, err := loader.Open(path, &loader.Options{Track: true})
		if err != nil {
			continue // of a format that is not read
		}
		defer p.Close()
		rts, _ := Open(p)
		right, refused, wrappers, own, told := 0, 0, 0, 0, 0
		for _, r := range rts {
			var methods []code.Compiled
			r.Compiled(func(m code.Compiled) bool {
				if m.ID != 0 {
					methods = append(methods, m)
				}
				return true
			})
			before := pages(p)
			r.orphanMethod(1)
			if n := pages(p) - before; n > 64 {
				t.Errorf("%s: a search that finds nothing has read %d pages", path, n)
			}
			for _, m := range methods {
				switch md := r.orphanMethod(m.Span.Lo); md {
				case m.ID:
					right++
				case 0:
					refused++
				default:
					t.Errorf("%s: the method at %v is %#x, not %v", path, m.Span.Lo, m.ID, md)
				}
			}
			// What stands for a MethodDesc that is missing is right for those that are there.
			for _, m := range r.orphans.methods {
				flags, ok1 := r.u16(field(m.by, r.names.MDFlags))
				kind, ok2 := r.u16(field(m.by, r.names.InstFlags))
				if !ok1 || !ok2 {
					continue
				}
				if flags&classMask == classInstantiated && kind&instKind == instWrapper {
					if wrappers++; r.inLargeChunk(m.by) {
						t.Errorf("%s: the instantiation at %v passes for one of several methods", path, m.by)
					}
				} else if own++; r.inLargeChunk(m.by) {
					told++
				}
			}
			began := time.Now()
			for i := range arch.Addr(20_000) {
				r.orphanMethod(1 + 16*i)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("%s: to look for 20,000 methods took %v", path, d)
			}
		}
		t.Logf("%s: %d right, %d refused; %d instantiations over shared code, and %d other methods, of which %d are told from such without their MethodDescs", path, right, refused, wrappers, own, told)
	}
}

func pages(p *loader.Process) (n arch.Addr) {
	for _, s := range p.Memory.Touched() {
		n += (s.Hi - s.Lo) / pageSize
	}
	return n
}

// TestNeighboursOfUnknownSize asks what lies in one chunk where the contract does
// not say how large a chunk's head is, or where an instantiation ends: nothing
// follows from how far apart two MethodDescs are.
func TestNeighboursOfUnknownSize(t *testing.T) {
	list := []precode{{0x1000, 0x5000}, {0x102c, 0x5018}}
	whole := nameLayout{MDSize: 16, ChunkSize: 24, InstCount: 38}
	for _, n := range []struct {
		what   string
		lacks  func(l *nameLayout)
		answer func(r *Runtime) bool
	}{
		{"InstCount", func(l *nameLayout) { l.InstCount = nowhere }, func(r *Runtime) bool { return r.inLargeChunk(0x100) }},
		{"MDSize", func(l *nameLayout) { l.MDSize = nowhere }, func(r *Runtime) bool { return r.inLargeChunk(0x100) }},
		{"DynamicSize", func(*nameLayout) {}, func(r *Runtime) bool {
			r.replayLayout.DynamicSize = nowhere
			p := Replay{r: r}
			return p.ordinary(0x1000)
		}},
		{"ChunkSize", func(l *nameLayout) { l.ChunkSize = nowhere }, func(r *Runtime) bool {
			r.replayLayout.DynamicSize = 48
			p := Replay{r: r}
			return p.ordinary(0x102c)
		}},
	} {
		r := &Runtime{mem: new(loader.Memory)}
		r.names.nameLayout = whole
		n.lacks(&r.names.nameLayout)
		r.orphans.methods = list
		r.orphans.once.Do(func() {})
		if n.answer(r) {
			t.Errorf("without %s: two MethodDescs count as neighbours", n.what)
		}
	}
}
