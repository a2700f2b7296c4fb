package clr

import (
	"encoding/binary"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// nibbleWriter writes what nibbleReader reads.
type nibbleWriter struct {
	b    []byte
	half bool
}

func (w *nibbleWriter) number(v uint32) {
	n := 1
	for v>>(3*n) != 0 && n < 11 {
		n++
	}
	for n--; n >= 0; n-- {
		c := byte(v>>(3*n)) & 7
		if n > 0 {
			c |= 8
		}
		if w.half {
			w.b[len(w.b)-1] |= c << 4
		} else {
			w.b = append(w.b, c)
		}
		w.half = !w.half
	}
}

// ofCall returns 1 for an entry of a call.
func ofCall(m mapping) uint32 {
	if m.call {
		return 1
	}
	return 0
}

// writeBounds encodes a map in any of its forms.
func writeBounds(f boundsForm, ms []mapping) []byte {
	var w nibbleWriter
	w.number(uint32(len(ms)))
	last := uint64(0)
	if f == boundsNibbles {
		for _, m := range ms {
			w.number(uint32(m.native - last))
			w.number(m.il + ilBias)
			w.number(2 + ofCall(m)*callInstruction)
			last = m.native
		}
		return w.b
	}
	const nativeBits, ilBits = 13, 11
	w.number(nativeBits - 1)
	w.number(ilBits - 1)
	var bits []bool
	put := func(v uint64, n int) {
		for i := range n {
			bits = append(bits, v>>i&1 != 0)
		}
	}
	for _, m := range ms {
		put(2+uint64(ofCall(m)), int(f))
		put(m.native-last, nativeBits)
		put(uint64(m.il+ilBias), ilBits)
		last = m.native
	}
	tail := make([]byte, (len(bits)+7)/8)
	for i, b := range bits {
		if b {
			tail[i/8] |= 1 << (i % 8)
		}
	}
	return append(w.b, tail...)
}

var boundsForms = []boundsForm{boundsNibbles, boundsBits2, boundsBits3}

// TestBounds: a map of each form reads as it was written, and not at all with a
// byte more or less.
func TestBounds(t *testing.T) {
	rnd := rand.New(rand.NewSource(2))
	for range 200 {
		var ms []mapping
		at := uint64(0)
		for range rnd.Intn(40) + 1 {
			ms = append(ms, mapping{at, uint32(rnd.Intn(1000)) - ilBias, rnd.Intn(3) == 0})
			at += uint64(rnd.Intn(3000))
		}
		for _, f := range boundsForms {
			b := writeBounds(f, ms)
			var got []mapping
			if !f.read(b, func(m mapping) bool {
				got = append(got, m)
				return true
			}) || len(got) != len(ms) {
				t.Fatalf("form %d: %d entries of %d", f, len(got), len(ms))
			}
			for i := range ms {
				if got[i] != ms[i] {
					t.Fatalf("form %d: entry %d is %v, want %v", f, i, got[i], ms[i])
				}
			}
			for _, cut := range [][]byte{b[:len(b)-1], append(b[:len(b):len(b)], 0x77)} {
				if f.read(cut, func(mapping) bool { return true }) {
					t.Errorf("form %d: %d bytes are taken for %d", f, len(cut), len(b))
				}
			}
		}
	}
}

// TestILOffset goes through each outer form: a method with a map, and before it
// what the runtime may put there.
func TestILOffset(t *testing.T) {
	ms := []mapping{{0, prologIL, false}, {7, 1, false}, {20, 5, false}, {31, 9, true}, {40, 0x30, false}, {44, noMappingIL, false}, {50, epilogIL, false}}
	const header, info, start = 0x7000_0000, 0x7000_1000, 0x7100_0000
	le := binary.LittleEndian
	outer := map[string]func(bounds []byte) []byte{
		"8.0.31": func(b []byte) []byte {
			// Patchpoints of 32 bytes and two locals; rich information.
			d := make([]byte, 1+32+8+4+3)
			d[0] = debugPatchpoints | debugRich
			le.PutUint32(d[1+8:], 2)
			le.PutUint32(d[1+40:], 3)
			w := nibbleWriter{b: d}
			w.number(uint32(len(b)))
			w.number(0)
			return append(w.b, b...)
		},
		"10.0.0": func(b []byte) []byte {
			d := make([]byte, 1+40+8)
			d[0] = debugPatchpoints
			le.PutUint32(d[1+16:], 2)
			w := nibbleWriter{b: d}
			w.number(uninstrumentedMark)
			w.number(11) // bounds of instrumented IL, which lie in front of the others
			w.number(uint32(len(b)))
			w.number(70)
			return append(append(w.b, make([]byte, 11)...), b...)
		},
		"11.0.0": func(b []byte) []byte {
			var w nibbleWriter
			for _, n := range []uint32{0, 11, 1, uint32(len(b)), 3, 4, 5} {
				w.number(n)
			}
			return append(append(w.b, make([]byte, 12)...), b...)
		},
		"11.0.1": func(b []byte) []byte {
			var w nibbleWriter
			w.number(uint32(len(b)))
			w.number(0)
			return append(w.b, b...)
		},
	}
	for version, wrap := range outer {
		m := fakeMemory{}
		model := fakeRuntime(t, nil)
		model.Version = version
		set := func(r *Runtime) {
			r.Version = version
			r.release, r.use = releaseOf(version)
			if strings.HasPrefix(version, "11.") {
				r.data.contracts["DebugInfo"] = "c1"
			}
		}
		set(model)
		_, form := model.jitForms()
		m.bytes(info, wrap(writeBounds(form, ms)))
		m.word(header, info)
		r := fakeRuntime(t, m.core(t))
		set(r)
		c := Code{Code: code.Code{Kind: code.JIT, Start: start}, Header: header}
		for off, want := range map[arch.Addr]int{0: -1, 7: 0, 8: 1, 20: 1, 21: 5, 40: 5, 41: 0x30, 45: 0, 51: 0x30, 100: 0x30} {
			il, ok := r.ilOffset(&c, arch.PC{Addr: start + off})
			if !ok && want >= 0 || ok && int(il) != want {
				t.Errorf("%s: a return to %d is in IL %#x, %v; want %#x", version, off, il, ok, want)
			}
		}
		if il, ok := r.ilOffset(&c, arch.PC{Addr: start + 20, Exact: true}); !ok || il != 5 {
			t.Errorf("%s: what is about to run at 20 is IL %#x, %v; want 5", version, il, ok)
		}
		if il, ok := r.ilOffset(&Code{Code: code.Code{Kind: code.JIT}, Header: header}, arch.PC{Addr: start + 20}); ok {
			t.Errorf("%s: code whose start is not known is at IL %#x", version, il)
		}
		if _, ok := r.ilOffset(&Code{Code: code.Code{Kind: code.Stub, Start: start}}, arch.PC{Addr: start}); ok {
			t.Errorf("%s: a stub has an IL offset", version)
		}
	}
}

// TestNativeArray reads an array of twenty places that has elements 3, 11 and
// 18: two blocks, the first a tree that parts at bit 3, each end of it and the
// second block a leaf.
func TestNativeArray(t *testing.T) {
	number := func(v byte) byte { return v << 1 } // of seven bits
	data := []byte{
		number(20 << 2 & 0x7f), // 20 elements, offsets of one byte
		2, 7,                   // of the blocks, from here
		number(3 | 3<<2),             // both sides; the right one three bytes from here
		number(3 << 2), number(0x33), // only element 3 on this side
		number(11 << 2), number(0x3b),
		number(2 << 2), number(0x22), // block 1: only 18
	}
	m := fakeMemory{}
	const at = 0x7000_0000
	m.bytes(at, data)
	r := fakeRuntime(t, m.core(t))
	want := map[uint32]uint32{3: 0x33, 11: 0x3b, 18: 0x22}
	for i := range uint32(40) {
		elem, ok := nativeArray{r: r, at: at}.find(i)
		if _, has := want[i]; ok != has {
			t.Errorf("element %d is there: %v, want %v", i, ok, has)
		} else if v, _, _ := r.nativeNumber(elem); ok && v != want[i] {
			t.Errorf("element %d is %#x, want %#x", i, v, want[i])
		}
	}
	for number, want := range map[string]uint32{"\x7e": 63, "\x01\x01": 0x40, "\x03\x00\x01": 0x2000, "\x07\x00\x00\x10": 0x1000000, "\x0f\x78\x56\x34\x12": 0x12345678} {
		m := fakeMemory{}
		m.bytes(at, []byte(number))
		if v, next, ok := fakeRuntime(t, m.core(t)).nativeNumber(at); v != want || int(next-at) != len(number) || !ok {
			t.Errorf("%x reads as %#x, %d bytes; want %#x", number, v, next-at, want)
		}
	}
}

// TestNativeTable reads a table of two buckets, of two entries and of one.
func TestNativeTable(t *testing.T) {
	const at = 0x7000_0000
	data := []byte{
		1 << 2,  // two buckets, offsets of one byte
		3, 7, 9, // where they begin and end, from here
		0x10, 6 << 1, // of the hash; the entry is 6 bytes from here
		0x20, 5 << 1,
		0x15, 0xf7 << 1 & 0xff, // nine bytes back: a signed number
		0xaa, 0xbb,
	}
	m := fakeMemory{}
	m.bytes(at, data)
	table := nativeTable{r: fakeRuntime(t, m.core(t)), at: at, size: uint32(len(data))}
	var got [][2]uint64
	table.entries(func(bucket uint32, a arch.Addr) { got = append(got, [2]uint64{uint64(bucket), uint64(a - at)}) })
	if want := [][2]uint64{{0, 11}, {0, 12}, {1, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
}
