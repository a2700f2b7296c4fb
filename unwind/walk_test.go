package unwind

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
)

type mem struct {
	base arch.Addr
	w    []uint64
}

func (m *mem) Word(a arch.Addr) (uint64, bool) {
	i := (a - m.base) / 8
	if a < m.base || a%8 != 0 || int(i) >= len(m.w) {
		return 0, false
	}
	return m.w[i], true
}
func (m *mem) View(a arch.Addr, n int) []byte { return nil }

var guess = &Options{Guess: true}

// chain lays out n frames as a's own frame-pointer rule has them, so that it
// serves every CPU, those not written yet too.
func chain(a *arch.Arch, n int) (*mem, *arch.Regs) {
	rule := &a.FramePointer
	cfa := func(i int) uint64 { return 0x7010 + 16*uint64(i) }
	m := &mem{base: 0x7000, w: make([]uint64, 2*n)}
	for i := range n {
		for _, s := range rule.Saved[:rule.N] {
			v := cfa(i+1) - uint64(rule.Offset)
			if s.Reg == a.PC {
				v = 0x400000 + 16*uint64(i)
				if i == n-1 {
					v = 0
				}
			}
			m.w[(cfa(i)+uint64(int64(s.Off))-0x7000)/8] = v
		}
	}
	var r arch.Regs
	r.Set(a.PC, 0x400abc)
	r.Set(a.SP, 0x6ff0)
	r.Set(a.FP, cfa(0)-uint64(rule.Offset))
	return m, &r
}

func TestWalk(t *testing.T) {
	for _, a := range arch.All() {
		t.Run(a.Name, func(t *testing.T) {
			m, r := chain(a, 64)
			w := New(a, m, nil, guess).NewWalker()
			fs, stop := w.Walk(nil, r)
			if len(fs) != 64 || stop.Reason != ZeroReturn {
				t.Errorf("got %d frames, %v, want 64, zero_return", len(fs), stop.Reason)
			}
			m.w = m.w[:60]
			fs, stop = w.Walk(nil, r)
			if len(fs) != 31 || stop.Reason != MemoryMissing || stop.At != 0x7000+60*8+8 {
				t.Errorf("got %d frames, %v at %v", len(fs), stop.Reason, stop.At)
			}
		})
	}
}

func TestWalkAllocs(t *testing.T) {
	for _, a := range arch.All() {
		m, r := chain(a, 64)
		w := New(a, m, nil, guess).NewWalker()
		buf := make([]Frame, 0, 128)
		if n := testing.AllocsPerRun(100, func() { buf, _ = w.Walk(buf[:0], r) }); n != 0 {
			t.Errorf("%s: %v allocations per walk, want 0", a.Name, n)
		}
	}
}

func BenchmarkWalk64(b *testing.B) {
	m, r := chain(arch.AMD64, 64)
	w := New(arch.AMD64, m, nil, guess).NewWalker()
	buf := make([]Frame, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = w.Walk(buf[:0], r)
	}
}

// holed is mem with one word missing; it notes what is read.
type holed struct {
	*mem
	hole arch.Addr
	read []arch.Addr
}

func (h *holed) Word(a arch.Addr) (uint64, bool) {
	h.read = append(h.read, a)
	if a == h.hole {
		return 0, false
	}
	return h.mem.Word(a)
}

// Whatever word of the stack is missing, the walk returns the frames before
// it, says which word it was, and invents nothing.
func TestWalkEveryHole(t *testing.T) {
	for _, a := range arch.All() {
		m, r := chain(a, 16)
		h := &holed{mem: m}
		whole, _ := New(a, h, nil, guess).NewWalker().Walk(nil, r)
		for _, at := range h.read {
			part, stop := New(a, &holed{mem: m, hole: at}, nil, guess).NewWalker().Walk(nil, r)
			if stop.Reason != ZeroReturn && (stop.Reason != MemoryMissing || stop.At != at) {
				t.Errorf("%s: without %v: stop is %+v", a.Name, at, stop)
			}
			if len(part) > len(whole) || !slices.Equal(part, whole[:len(part)]) {
				t.Errorf("%s: without %v: frames are not a part of the whole walk", a.Name, at)
			}
		}
	}
}
