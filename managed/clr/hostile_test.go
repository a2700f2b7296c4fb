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
	began := time.Now()
	if v, _ := r.hashLookup(0x1000, 0x1234); v != 0 {
		t.Errorf("found %#x", v)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a look-up took %v", d)
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
