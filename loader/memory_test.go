package loader

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/seamwalk/seam/arch"
)

func fill(n int, first byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// Holes are holes on every side of a segment, and a word can lie in two.
func TestMemoryEdges(t *testing.T) {
	b := buildCore{loads: []buildLoad{
		{addr: 0x3000, data: fill(16, 32)}, // unsorted
		{addr: 0x1000, data: fill(20, 0)},
		{addr: 0x1014, data: fill(12, 20)}, // a neighbour of the second
		{addr: 0x5000, data: fill(16, 1), mem: 0x100},
		{addr: 0x7000, mem: 0x1000},
	}}
	b.thread(1, 0, 0)
	m := b.open(t, nil).Memory
	for _, c := range []struct {
		at   arch.Addr
		ok   bool
		want uint64
	}{
		{0xfff, false, 0}, {0x1000, true, 0x0706050403020100}, {0x1010, true, 0x1716151413121110},
		{0x1018, true, 0x1f1e1d1c1b1a1918}, {0x1019, false, 0}, {0x1020, false, 0},
		{0x2ff9, false, 0}, {0x3008, true, 0x2f2e2d2c2b2a2928}, {0x3009, false, 0},
		{0x5008, true, 0x100f0e0d0c0b0a09}, {0x5010, false, 0}, {0x7000, false, 0}, {^arch.Addr(3), false, 0},
	} {
		if v, ok := m.Word(c.at); v != c.want || ok != c.ok {
			t.Errorf("Word(%v) = %#x, %v; want %#x, %v", c.at, v, ok, c.want, c.ok)
		}
	}
	for _, c := range []struct {
		at   arch.Addr
		want Absence
	}{{0x1000, Present}, {0x5010, NotDumped}, {0x5100, Unmapped}, {0x7800, NotDumped}, {0x8000, Unmapped}, {0, Unmapped}} {
		if got, _ := m.Absent(c.at); got != c.want {
			t.Errorf("Absent(%v) = %v, want %v", c.at, got, c.want)
		}
	}
	if got := m.View(0x1000, 32); !bytes.Equal(got, fill(32, 0)) {
		t.Errorf("View across two segments = % x", got)
	}
	if m.View(0x1000, 33) != nil || m.View(0x1000, 1<<40) != nil || m.View(0x1000, -1) != nil {
		t.Error("View of more than there is")
	}
	var p [64]byte
	if n := m.Read(0x1010, p[:]); n != 16 {
		t.Errorf("Read = %d, want 16", n)
	}
}

// The first of the file wins where segments overlap.
func TestMemoryOverlap(t *testing.T) {
	b := buildCore{loads: []buildLoad{
		{addr: 0x1010, data: bytes.Repeat([]byte{1}, 16)},
		{addr: 0x1000, data: bytes.Repeat([]byte{2}, 64)},
		{addr: 0x1008, data: bytes.Repeat([]byte{3}, 256)},
	}}
	m := b.open(t, nil).Memory
	want := slices.Concat(bytes.Repeat([]byte{2}, 16), bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 200))
	if got := m.View(0x1000, 264); !bytes.Equal(got, want) {
		t.Errorf("got % x", got)
	}
}

// arrange agrees with painting byte by byte, whatever the extents.
func TestArrange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := make([]extent, r.IntN(12))
		for i := range list {
			list[i] = extent{arch.Addr(r.IntN(60)), uint64(i * 1000), uint64(1 + r.IntN(20))}
		}
		var want [100]uint64
		for i := len(list) - 1; i >= 0; i-- {
			for k := range list[i].n {
				want[uint64(list[i].lo)+k] = list[i].off + k + 1
			}
		}
		var got [100]uint64
		last := arch.Addr(0)
		for _, e := range arrange(list) {
			if e.lo < last {
				t.Fatalf("%v: overlap at %v", list, e.lo)
			}
			last = e.hi()
			for k := range e.n {
				got[uint64(e.lo)+k] = e.off + k + 1
			}
		}
		if got != want {
			t.Fatalf("%v:\ngot  %v\nwant %v", list, got, want)
		}
	}
}

// What is remembered is the pages that were read, by any number of goroutines.
func TestTouched(t *testing.T) {
	b := buildCore{loads: []buildLoad{{addr: 0x10000, data: make([]byte, 0x8000)}}}
	p := b.open(t, &Options{Track: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			p.Memory.Word(0x10ffc) // two pages
			p.Memory.View(0x14000, 1)
			p.Memory.View(0x17fff, 2) // not there
			p.Memory.Word(0x30000)
		})
	}
	wg.Wait()
	want := []arch.Span{{Lo: 0x10000, Hi: 0x12000}, {Lo: 0x14000, Hi: 0x15000}}
	if got := p.Memory.Touched(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func benchCore(segments int) *buildCore {
	b := new(buildCore)
	page := fill(pageSize, 0)
	for i := range segments {
		b.loads = append(b.loads, buildLoad{addr: 0x7f0000000000 + uint64(i)*3*pageSize, data: page, flags: elf.PF_R})
	}
	return b
}

// A walk reads neighbouring words of one stack.
func BenchmarkWordStack(b *testing.B) {
	m := benchCore(600).open(b, nil).Memory
	b.ReportAllocs()
	var sum uint64
	at := arch.Addr(0x7f0000000000 + 300*3*pageSize)
	for i := 0; b.Loop(); i++ {
		v, _ := m.Word(at + arch.Addr(i*8)&0xff8)
		sum += v
	}
	_ = sum
}

// The worst: another segment each time.
func BenchmarkWordScattered(b *testing.B) {
	m := benchCore(600).open(b, nil).Memory
	b.ReportAllocs()
	var sum uint64
	for i := 0; b.Loop(); i++ {
		v, _ := m.Word(arch.Addr(0x7f0000000000 + uint64(i*7919%600)*3*pageSize))
		sum += v
	}
	_ = sum
}

func TestWordAllocs(t *testing.T) {
	m := benchCore(600).open(t, nil).Memory
	if n := testing.AllocsPerRun(100, func() { m.Word(0x7f0000000000 + 9*3*pageSize); m.Word(1) }); n != 0 {
		t.Errorf("Word allocates %v times", n)
	}
}
