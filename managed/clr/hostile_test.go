package clr

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/loader"
)

// A descriptor may put fields where the structure that is read does not reach.
func TestHostileOffsets(t *testing.T) {
	m := fakeMemory{}
	m.put(0x1000, r2rSignature, 4)
	m.put(0x1000+r2rCount, 1, 4)
	m.put(0x1000+r2rSections, r2rDebugInfo, 4)
	m.put(0x1000+r2rSections+4, 0x77, 8)
	r := fakeRuntime(t, m.core(t))
	if s, ok := r.imageSection(0x1000, r2rDebugInfo); !ok || s.rva != 0x77 {
		t.Fatalf("the section lies at %#x, %v", s.rva, ok)
	}
	r.names.R2RMajor = 4000
	if _, ok := r.imageSection(0x1000, r2rDebugInfo); ok {
		t.Error("a version that is not there was read")
	}
}

// Look-ups in tables that lead round in a circle end soon.
func TestHostileLoops(t *testing.T) {
	m := fakeMemory{}
	r := fakeRuntime(t, nil)
	buckets := arch.Addr(0x2000)
	m.word(0x1000+arch.Addr(r.codeLayout.HashBuckets), buckets)
	m.put(buckets, 1<<32-1, 4)
	// All buckets in one place, each of them full.
	for i := range arch.Addr(16) {
		m.word(buckets+8+8*i, 1<<63|1)
	}
	p := m.core(t)
	r.proc, r.mem, r.arch = p, p.Memory, p.Arch
	r.codeLayout.BucketSize, r.codeLayout.BucketKeys, r.codeLayout.BucketValues = 0, 8, 40
	began, left := time.Now(), maxEntryProbes
	if v, missing := r.hashLookup(0x1000, 0x1234, &left); v != 0 || missing == 0 || left != maxEntryProbes-maxProbes {
		t.Errorf("found %#x, missing %v, %d probes left", v, missing, left)
	}
	left = 1
	if v, missing := r.hashLookup(0x1000, 0x1234, &left); v != 0 || missing == 0 || left != 0 {
		t.Errorf("found %#x, missing %v, %d probes left", v, missing, left)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a look-up took %v", d)
	}
}

// A map of code whose levels lead to each other has no end, and a page of
// precodes may be said to be as large as the address space.
func TestHostileSections(t *testing.T) {
	m := fakeMemory{}
	r := fakeRuntime(t, nil)
	level := (field(r.ranges, r.codeLayout.MapTop) + 0xffff) &^ 0xffff
	for i := range arch.Addr(rangeSlots) {
		m.word(field(r.ranges, r.codeLayout.MapTop)+8*i, level)
		m.word(level+8*i, level)
	}
	p := m.core(t)
	r.proc, r.mem, r.arch = p, p.Memory, p.Arch
	began := time.Now()
	for range 50 {
		r.sections(func(rangeSection) bool { return true })
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("50 lists took %v", d)
	}
	x := orphanIndex{layout: precodeLayout{page: pageSize, size: 24}}
	began, left := time.Now(), maxPrecodes
	x.search(r, arch.Span{Lo: 0x1000, Hi: 1 << 62}, &left, func(_, _, _ arch.Addr) {})
	if left != 0 {
		t.Errorf("%d left to look at", left)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("a search took %v", d)
	}
}

// A table of entry points that claims all rows there can be.
func TestHostileEntries(t *testing.T) {
	m := fakeMemory{}
	// Of 16 million rows, offsets of one byte: all lead to one element.
	m.put(0x1000, 0xf|uint64(maxRows-1)<<2<<8, 8)
	const size = 1 << 20
	for a := arch.Addr(0x1008); a < 0x1000+size; a += 8 {
		m.word(a, 0)
	}
	p := m.core(t)
	for _, section := range []uint32{size, 1, 1 << 31} {
		r := fakeRuntime(t, p)
		began := time.Now()
		for range 200 {
			r.readTables(entryTables{rows: 0x1000, size: section}, func(uint32, entry) {})
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("tables in sections of %d bytes took %v", section, d)
		}
	}
}

// A map of code over all of the address space, all zeros: a dump may be a file
// of holes.
func TestHostileMap(t *testing.T) {
	const size = 1 << 36
	le := binary.LittleEndian
	small := fakeMemory{0x1000: 0}.core(t)
	b, err := os.ReadFile(small.Path)
	if err != nil {
		t.Fatal(err)
	}
	le.PutUint64(b[64+56+32:], size)
	le.PutUint64(b[64+56+40:], size)
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size+int64(len(b))); err != nil {
		t.Skip(err)
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	r := fakeRuntime(t, p)
	r.nibbles = nibbleLinear
	h := codeHeap{End: 1 << 56, HeaderMap: 0x1000}
	began := time.Now()
	if start, ok, _ := r.methodStart(&h, size*63); ok {
		t.Errorf("a method at %v", start)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a look-up took %v", d)
	}
}

// A signature of few bytes may name a long type very often.
func TestHostileNames(t *testing.T) {
	long := ecma.Type{Name: strings.Repeat("N", 1<<15)}
	ts := make([]ecma.Type, 2048)
	for i := range ts {
		ts[i] = long
	}
	n := 0
	for _, s := range csharp(ts) {
		n += len(s)
	}
	if n > 1<<18 {
		t.Errorf("%d bytes of parameters", n)
	}
	if got := csharp(ts[:2]); len(got) != 2 || got[1] != long.Name {
		t.Error("two long names are cut")
	}
}
