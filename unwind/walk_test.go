package unwind

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/internal/objfile"
)

// mem is a memory of words. It is none of memtest's, as lean is not: benchmarks
// measure walks over it, and a generic memory costs each word a call more.
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
			w := New(a.On(arch.Linux), m, nil, guess).NewWalker()
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
		w := New(a.On(arch.Linux), m, nil, guess).NewWalker()
		buf := make([]Frame, 0, 128)
		if n := testing.AllocsPerRun(100, func() { buf, _ = w.Walk(buf[:0], r) }); n != 0 {
			t.Errorf("%s: %v allocations per walk, want 0", a.Name, n)
		}
	}
}

func BenchmarkWalk64(b *testing.B) {
	m, r := chain(arch.AMD64, 64)
	w := New(arch.AMD64.On(arch.Linux), m, nil, guess).NewWalker()
	buf := make([]Frame, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = w.Walk(buf[:0], r)
	}
}

// Whatever word of the stack is missing, the walk returns the frames before
// it, says which word it was, and invents nothing.
func TestWalkEveryHole(t *testing.T) {
	for _, a := range arch.All() {
		m, r := chain(a, 16)
		h := &memtest.Holed[arch.Addr]{Memory: m, Read: map[arch.Addr]bool{}}
		whole, _ := New(a.On(arch.Linux), h, nil, guess).NewWalker().Walk(nil, r)
		for at := range h.Read {
			part, stop := New(a.On(arch.Linux), &memtest.Holed[arch.Addr]{Memory: m, Hole: at}, nil, guess).NewWalker().Walk(nil, r)
			if stop.Reason != ZeroReturn && (stop.Reason != MemoryMissing || stop.At != at) {
				t.Errorf("%s: without %v: stop is %+v", a.Name, at, stop)
			}
			if len(part) > len(whole) || !slices.Equal(part, whole[:len(part)]) {
				t.Errorf("%s: without %v: frames are not a part of the whole walk", a.Name, at)
			}
		}
	}
}

// tower is a stack laid out by the rules it is to be unwound by: frames of
// functions that keep their CFA and registers in all the ways that call frame
// information has.
type tower struct {
	*synth
	bytes  memtest.Piece[arch.Addr] // of the stack
	stack  memtest.Holed[arch.Addr] // over bytes
	regs   arch.Regs
	frames []Frame     // the truth
	saved  []arch.Regs // callee-saved registers of each
}

const stackAt = 0x7000_0000

func (w *tower) View(a arch.Addr, n int) []byte {
	if w.bytes.View(a, 1) != nil {
		return w.stack.View(a, n)
	}
	return w.synth.View(a, n)
}

func (w *tower) Word(a arch.Addr) (uint64, bool) {
	if b := w.View(a, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

// shapes are functions and how their frames are laid out. size is the
// distance from the frame's SP, at a call, to its CFA.
var shapes = []struct {
	name  string
	size  uint64
	fde   asm
	store map[arch.Reg]int64 // registers the frame saves, offset from the CFA
	fp    bool               // rbp holds CFA - 16

}{
	{name: "plain", size: 24, fde: asm{}.u8(cfaDefCFAOffset, 24)},
	{name: "saves", size: 48, fde: asm{}.u8(cfaDefCFAOffset, 48, cfaOffset|3, 2, cfaOffset|12, 3, cfaOffset|15, 4),
		store: map[arch.Reg]int64{3: -16, 12: -24, 15: -32}},
	{name: "frame pointer", size: 64, fde: asm{}.u8(cfaOffset|6, 2, cfaDefCFA, 6, 16, cfaOffset|13, 3),
		store: map[arch.Reg]int64{6: -16, 13: -24}, fp: true},
	{name: "aligned", size: 64, // CFA = *(rbp - 8), as GCC has it for over-aligned locals
		fde:   asm{}.u8(cfaDefCFAExpression).block(asm{}.u8(opBreg0+6).sleb(-8).u8(opDeref)).u8(cfaExpression, 6).block(asm{}.u8(opBreg0+6, 0)),
		store: map[arch.Reg]int64{6: -16, noReg: -24}, fp: true},
	{name: "expression", size: 40, fde: asm{}.u8(cfaDefCFAOffset, 40, cfaExpression, 14).block(asm{}.u8(opConst1u, 16, opMinus)),
		store: map[arch.Reg]int64{14: -16}},
}

// noReg stands for a slot that holds the CFA.
const noReg arch.Reg = 0xfe

func newTower(rnd *rand.Rand, depth int) *tower {
	a := arch.AMD64
	fns := []function{{lo: synthBase + 0x10, size: 0x40, fde: asm{}.u8(cfaUndefined, 16)}}
	for i, s := range shapes {
		fns = append(fns, function{lo: synthBase + 0x100*uint64(i+1), size: 0x40, fde: s.fde})
	}
	w := &tower{synth: newSynth(a, objfile.PtrDataRel|objfile.PtrS4, fns)}
	w.bytes = memtest.Piece[arch.Addr]{At: stackAt, Data: make([]byte, 64*(depth+4))}
	w.stack = memtest.Holed[arch.Addr]{Memory: w.bytes, Read: map[arch.Addr]bool{}}

	// From the root, which has no caller, down to the leaf.
	sp := uint64(stackAt + len(w.bytes.Data) - 64)
	var r arch.Regs
	for _, reg := range []arch.Reg{3, 6, 12, 13, 14, 15} {
		r.Set(reg, rnd.Uint64())
	}
	pc := uint64(synthBase + 0x10 + 0x20)
	r.Set(a.PC, pc)
	r.Set(a.SP, sp)
	for i := range depth {
		w.frames = append(w.frames, Frame{PC: arch.PC{Addr: arch.Addr(pc)}, SP: arch.Addr(sp), By: ByEhFrame})
		w.saved = append(w.saved, r)
		n := rnd.IntN(len(shapes))
		s := shapes[n]
		cfa := sp
		put := func(off int64, v uint64) {
			binary.LittleEndian.PutUint64(w.bytes.Data[cfa+uint64(off)-stackAt:], v)
		}
		put(-8, pc)
		for reg, off := range s.store {
			if reg == noReg {
				put(off, cfa)
				continue
			}
			v, _ := r.Get(reg)
			put(off, v)
			r.Set(reg, rnd.Uint64())
		}
		if s.fp {
			r.Set(6, cfa-16)
		}
		sp = cfa - s.size
		// A call right at the function's end, as of one that never returns.
		pc = synthBase + 0x100*uint64(n+1) + 1 + uint64(rnd.IntN(0x40))
		if i == depth-1 {
			pc--
		}
		r.Set(a.PC, pc)
		r.Set(a.SP, sp)
	}
	w.frames = append(w.frames, Frame{PC: arch.PC{Addr: arch.Addr(pc), Exact: true}, SP: arch.Addr(sp)})
	slices.Reverse(w.frames)
	slices.Reverse(w.saved)
	w.regs = r
	return w
}

func (w *tower) unwinder() *Unwinder { return New(w.arch.On(arch.Linux), w, []Image{w}, nil) }

func TestTower(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		w := newTower(rnd, 40)
		walker := w.unwinder().NewWalker()
		for again := range 2 { // the second time from the cache
			fs, stop := walker.Walk(nil, &w.regs)
			if stop.Reason != EndOfStack || !slices.Equal(fs, w.frames) {
				t.Fatalf("walk %d: stop %+v\ngot  %v\nwant %v", again, stop, fs, w.frames)
			}
		}
		walker.Start(&w.regs, true, nil)
		for i := 0; walker.Next(); i++ {
			for _, reg := range []arch.Reg{3, 6, 12, 13, 14, 15} {
				got, known := walker.Regs().Get(reg)
				if want, _ := w.saved[i].Get(reg); !known || got != want {
					t.Fatalf("frame %d: r%d is %#x, want %#x", i+1, reg, got, want)
				}
			}
			if walker.Regs().Known() != arch.AMD64.On(arch.Linux).CalleeSaved|arch.Regset(arch.AMD64.PC, arch.AMD64.SP) {
				t.Fatalf("frame %d knows %#x", i+1, walker.Regs().Known())
			}
		}
	}
}

// Whatever word is missing, the walk gives the frames before it and names it;
// one that held a register nobody needs does no harm.
func TestTowerEveryHole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		w := newTower(rnd, 30)
		u := w.unwinder()
		u.NewWalker().Walk(nil, &w.regs)
		var words []arch.Addr
		for a := range w.stack.Read {
			words = append(words, a)
		}
		harmless := 0
		walker := u.NewWalker() // its cache outlives the holes
		for _, at := range words {
			w.stack.Hole = at
			fs, stop := walker.Walk(nil, &w.regs)
			if len(fs) > len(w.frames) || !slices.Equal(fs, w.frames[:len(fs)]) {
				t.Fatalf("without %v: frames are no part of the whole walk", at)
			}
			if stop.Reason == EndOfStack {
				harmless++
			} else if stop.Reason != MemoryMissing || stop.At != at {
				t.Fatalf("without %v: stop is %+v", at, stop)
			}
		}
		w.stack.Hole = 0
		if harmless == 0 || harmless == len(words) {
			t.Errorf("%d of %d holes are harmless", harmless, len(words))
		}
	}
}

// One unwinder, walked by many goroutines from the first look-up on, gives
// each the same answer.
func TestTowerTogether(t *testing.T) {
	w := newTower(rand.New(rand.NewPCG(9, 10)), 60)
	u := New(w.arch.On(arch.Linux), &lean{w}, []Image{w}, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			walker := u.NewWalker()
			for range 20 {
				if fs, stop := walker.Walk(nil, &w.regs); stop.Reason != EndOfStack || !slices.Equal(fs, w.frames) {
					t.Errorf("got %d frames, %+v", len(fs), stop)
				}
			}
		})
	}
	all.Wait()
}

func TestTowerAllocs(t *testing.T) {
	w := newTower(rand.New(rand.NewPCG(5, 6)), 60)
	m := &lean{w}
	walker := New(w.arch.On(arch.Linux), m, []Image{w}, nil).NewWalker()
	buf := make([]Frame, 0, 128)
	if n := testing.AllocsPerRun(100, func() { buf, _ = walker.Walk(buf[:0], &w.regs) }); n != 0 {
		t.Errorf("%v allocations per walk, want 0", n)
	}
	// The first walk of a walker allocates no more: what it writes to it has.
	u := walker.u
	ws := make([]*Walker, 101)
	for i := range ws {
		ws[i] = u.NewWalker()
	}
	i := 0
	if n := testing.AllocsPerRun(100, func() { buf, _ = ws[i].Walk(buf[:0], &w.regs); i++ }); n != 0 {
		t.Errorf("%v allocations per first walk, want 0", n)
	}
}

// lean is a tower's memory that keeps no record.
type lean struct{ *tower }

func (m *lean) View(a arch.Addr, n int) []byte {
	if s := &m.bytes; a >= s.At && a < s.At+arch.Addr(len(s.Data)) && int(a-s.At)+n <= len(s.Data) {
		return s.Data[a-s.At:][:n]
	}
	return m.synth.View(a, n)
}

func (m *lean) Word(a arch.Addr) (uint64, bool) {
	if b := m.View(a, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

func BenchmarkTower(b *testing.B) {
	w := newTower(rand.New(rand.NewPCG(7, 8)), 100)
	u := New(w.arch.On(arch.Linux), &lean{w}, []Image{w}, nil)
	buf := make([]Frame, 0, 128)
	b.Run("cached", func(b *testing.B) {
		walker := u.NewWalker()
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = walker.Walk(buf[:0], &w.regs)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(buf)), "ns/frame")
	})
	b.Run("cold", func(b *testing.B) {
		walker := u.NewWalker()
		b.ReportAllocs()
		for b.Loop() {
			walker.cache = [cacheSize]cached{}
			buf, _ = walker.Walk(buf[:0], &w.regs)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(buf)), "ns/frame")
	})
}
