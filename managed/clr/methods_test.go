package clr

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

const (
	fakeSection = arch.Addr(0x20000000) // structures of the range map
	fakeCode    = arch.Addr(0x40000000)
)

// heap makes a range map with one heap of JIT-compiled code from fakeCode on,
// and in it methods and a block of stubs at the given places, in any encoding
// of the nibble map. It returns the addresses of the codes' MethodDescs.
func (f *fakeTypes) heap(r *Runtime, size int, starts []int, sizes []int) {
	l := &r.codeLayout
	level := field(r.ranges, l.MapTop)
	section, node, frag := fakeSection, fakeSection+0x1000, fakeSection+0x2000
	headers := fakeSection + 0x10000
	units := fakeSection + 0x8000
	for n := rangeLevels - 1; n >= 0; n-- {
		next := fakeSection + 0x100000*arch.Addr(n+1)
		if n == 0 {
			next = frag
		}
		f.word(level+8*(fakeCode>>(rangeLeafShift+rangeLevelBits*n)%rangeSlots), next|collectibleBit)
		level = next
	}
	for a := arch.Addr(0); a < 128; a += 8 {
		f.word(section+a, 0)
		f.word(node+a, 0)
	}
	end := fakeCode + arch.Addr(size)
	f.word(field(frag, l.FragNext), 0)
	f.word(field(frag, l.FragBegin), fakeCode)
	f.word(field(frag, l.FragEnd), end)
	f.word(field(frag, l.FragSection), section)
	f.word(field(section, l.SecBegin), fakeCode)
	f.word(field(section, l.SecEnd), end)
	f.put(field(section, l.SecFlags), rangeCodeHeap, 8)
	f.word(field(section, l.SecHeap), node)
	f.word(field(node, l.HeapStart), fakeCode)
	f.word(field(node, l.HeapEnd), end)
	f.word(field(node, l.HeapBase), fakeCode)
	f.word(field(node, l.HeapMap), units)
	nibbles := make([]uint32, size/256+1)
	for i, s := range starts {
		nibbles[s/256] |= uint32(s%32/4+1) << (28 - 4*(s/32%8))
		if r.nibbles == nibblePointer {
			// Units that the code covers from end to end point back to it.
			for u := s/256 + 1; (u+1)*256 <= s+sizes[i]; u++ {
				nibbles[u] = uint32(s)&^0x1f | uint32(s%32/4+9)
			}
		}
		header := headers + 128*arch.Addr(i)
		if i == 1 {
			f.word(fakeCode+arch.Addr(s)-8, 6) // a block of dispatch stubs
			continue
		}
		f.word(fakeCode+arch.Addr(s)-8, header)
		f.word(field(header, l.HdrMethod), arch.Addr(0x9000+32*i))
		f.put(arch.Addr(0x9000+32*i), 0, 8)
		if i == 2 {
			f.put(field(0x9000+32*2, r.names.MDFlags), classDynamic, 2)
		}
		// A body and a funclet.
		f.put(field(header, l.HdrCount), 2, 4)
		at := field(header, l.HdrUnwinds)
		for k, v := range []int{s, s + 4, 0, s + 4, s + sizes[i], 0} {
			f.put(at+4*arch.Addr(k), uint64(v), 4)
		}
	}
	for u, v := range nibbles {
		f.put(units+4*arch.Addr(u), uint64(v), 4)
	}
}

// TestCompiled: what a nibble map of either encoding lists is what it finds
// by address.
func TestCompiled(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, version := range []nibbleVersion{nibbleLinear, nibblePointer} {
		const size = 0x8000
		var starts, sizes []int
		for at := 32; ; {
			n := 8 + 4*rnd.Intn(16)
			if rnd.Intn(4) == 0 {
				n = 4 * rnd.Intn(1000)
			}
			n = max(n, 8)
			if at+n > size {
				break
			}
			starts, sizes = append(starts, at), append(sizes, n)
			at = (at+n+8)&^3 + 4*rnd.Intn(4)
			at = (at + 31) &^ 31 // no bucket has two starts
			at += 4 * rnd.Intn(4)
		}
		f := &fakeTypes{fakeMemory: fakeMemory{}}
		model := fakeRuntime(t, nil)
		model.nibbles = version
		f.heap(model, size, starts, sizes)
		r := fakeRuntime(t, f.core(t))
		r.nibbles = version

		var got []code.Compiled
		r.Compiled(func(m code.Compiled) bool {
			got = append(got, m)
			return true
		})
		if len(got) != len(starts) {
			t.Fatalf("version %d: %d methods, want %d", version, len(got), len(starts))
		}
		for i, m := range got {
			want := code.Compiled{Span: arch.Span{Lo: fakeCode + arch.Addr(starts[i])}, ID: arch.Addr(0x9000 + 32*i), Source: "clr"}
			want.Span.Hi = want.Span.Lo + arch.Addr(sizes[i])
			switch i {
			case 1:
				want.ID, want.Kind, want.Stub = 0, code.CompiledStub, code.StubDispatch
				want.Span.Hi = fakeCode + arch.Addr(starts[2]) - 8
			case 2:
				want.Kind = code.CompiledDynamic
			}
			if m != want {
				t.Errorf("version %d: method %d is %+v, want %+v", version, i, m, want)
			}
			for _, at := range []arch.Addr{m.Span.Lo, m.Span.Lo + 4, (m.Span.Lo + m.Span.Hi) / 2, m.Span.Hi - 1} {
				if c, missing := r.CodeAt(at); c.Start != m.Span.Lo || missing != 0 {
					t.Errorf("version %d: %v looks up %v (missing %v), want %v", version, at, c.Start, missing, m.Span.Lo)
				}
			}
		}
		first := slices.Clone(got[:3])
		got = got[:0]
		r.Compiled(func(m code.Compiled) bool {
			got = append(got, m)
			return len(got) < 3
		})
		if !slices.Equal(got, first) {
			t.Errorf("version %d: stopped after three: %+v", version, got)
		}
	}
}
