package clr

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seamwalk/seam/managed/code"
)

func (w *nibbleWriter) signed(v int32) {
	if v < 0 {
		w.number(uint32(-v)<<1 | 1)
		return
	}
	w.number(uint32(v) << 1)
}

func (w *nibbleWriter) word(v uint64) {
	for range 16 {
		if w.half {
			w.b[len(w.b)-1] |= byte(v&15) << 4
		} else {
			w.b = append(w.b, byte(v&15))
		}
		w.half = !w.half
		v >>= 4
	}
}

// A richEntry is an entry of a made map of inlined calls.
type richEntry struct {
	native, in uint32
	il         uint32
}

// writeRich encodes rich debug information.
func writeRich(tree []inlineNode, entries []richEntry) []byte {
	var w nibbleWriter
	w.number(uint32(len(tree)))
	w.number(uint32(len(entries)))
	last := inlineNode{il: prologIL}
	for _, n := range tree {
		w.word(uint64(n.method))
		w.signed(int32(n.il - last.il))
		w.signed(int32(n.child - last.child))
		w.signed(int32(n.sibling - last.sibling))
		last = n
	}
	e := richEntry{il: prologIL}
	for _, n := range entries {
		w.number(n.native - e.native)
		w.signed(int32(n.in - e.in))
		w.signed(int32(n.il - e.il))
		w.number(2)
		e = n
	}
	return w.b
}

// A method that calls A, which calls B, and then C, all inlined.
var (
	richTree = []inlineNode{
		{0x7f0000001000, 0, 1, 0},
		{0x7f0000002000, 0x10, 2, 3}, // A, called at 0x10
		{0x7f0000003000, 0x22, 0, 0}, // B, called at 0x22 of A
		{0x7f0000004000, 0x15, 0, 0}, // C, called at 0x15
	}
	richEntries = []richEntry{{0, 0, prologIL}, {8, 0, 0}, {20, 1, 4}, {30, 2, 7}, {40, 1, 0x27}, {50, 3, 1}, {60, 0, 0x1a}, {70, 0, epilogIL}}
)

func TestInlined(t *testing.T) {
	a, b, c := richTree[1].method, richTree[2].method, richTree[3].method
	whole := writeRich(richTree, richEntries)
	for native, want := range map[uint64][]code.Inlined{
		0: nil, 7: nil, 8: nil, 19: nil,
		20: {{Method: a, ILOffset: 4}},
		39: {{Method: b, ILOffset: 7}, {Method: a, ILOffset: 0x22}},
		40: {{Method: a, ILOffset: 0x27}},
		59: {{Method: c, ILOffset: 1}},
		60: nil, 75: nil,
	} {
		if got := inlinedAt(whole, native); !slices.Equal(got, want) {
			t.Errorf("at %d: %+v, want %+v", native, got, want)
		}
		for n := range len(whole) {
			if got := inlinedAt(whole[:n], native); got != nil {
				t.Errorf("cut to %d bytes, at %d: %+v", n, native, got)
			}
		}
	}
	// Trees that are none.
	for name, change := range map[string]func(tree []inlineNode){
		"a cycle":           func(tree []inlineNode) { tree[2].child = 1 },
		"a ring":            func(tree []inlineNode) { tree[3].sibling = 1 },
		"itself":            func(tree []inlineNode) { tree[2].child = 2 },
		"a node beyond":     func(tree []inlineNode) { tree[2].child = 9 },
		"no method":         func(tree []inlineNode) { tree[1].method = 0 },
		"a caller's epilog": func(tree []inlineNode) { tree[2].il = epilogIL },
	} {
		tree := slices.Clone(richTree)
		change(tree)
		if got := inlinedAt(writeRich(tree, richEntries), 30); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Rich debug information is found in each form of what lies around it.
func TestRichChunk(t *testing.T) {
	const info = 0x7000_1000
	rich := writeRich(richTree, richEntries)
	le := binary.LittleEndian
	for _, c := range []struct {
		name  string
		outer outerForm
		data  func() []byte
	}{
		{"8.0, with patchpoints", outerFlags9, func() []byte {
			d := make([]byte, 1+32+8)
			d[0] = debugPatchpoints | debugRich
			le.PutUint32(d[1+8:], 2)
			w := nibbleWriter{b: append(le.AppendUint32(d, uint32(len(rich))), rich...)}
			w.number(3)
			w.number(0)
			return append(w.b, 1, 2, 3)
		}},
		{"10.0", outerFlags10, func() []byte {
			w := nibbleWriter{b: append(le.AppendUint32([]byte{debugRich}, uint32(len(rich))), rich...)}
			w.number(3)
			w.number(0)
			return append(w.b, 1, 2, 3)
		}},
		{"later", outerCounts, func() []byte {
			var w nibbleWriter
			for _, n := range []uint32{0, 3, 2, 5, 7, uint32(len(rich)), 0} {
				w.number(n)
			}
			return append(append(w.b, make([]byte, 3+2+5+7)...), rich...)
		}},
	} {
		m := fakeMemory{}
		m.bytes(info, c.data())
		r := fakeRuntime(t, m.core(t))
		var d debugChunks
		ok := false
		if c.outer == outerCounts {
			d, ok = r.countedChunks(info)
		} else {
			d, ok = r.flaggedChunks(info, c.outer)
		}
		if !ok || string(r.bytesOf(d.rich)) != string(rich) {
			t.Errorf("%s: %+v, %v", c.name, d, ok)
		}
	}
}

func FuzzInlined(f *testing.F) {
	f.Add(writeRich(richTree, richEntries), uint64(30))
	f.Fuzz(func(t *testing.T, b []byte, native uint64) {
		if got := inlinedAt(b, native); len(got) > maxInlined {
			t.Errorf("%d calls", len(got))
		}
	})
}
