package ecma

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

func TestInstructions(t *testing.T) {
	il := []byte{
		0x72, 1, 0, 0, 0x70, // 0: ldstr
		0x28, 2, 0, 0, 0x0a, // 5: call
		0x2b, 0xf4, // 10: br.s 0
		0x38, 0xfb, 0xff, 0xff, 0xff, // 12: br 12
		0x45, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, // 17: switch 30, 31
		0xfe, 0x06, 3, 0, 0, 6, // 30: ldftn
		0x21, 1, 2, 3, // ldc.i8, cut
	}
	list := Instructions(il)
	want := []struct {
		at   uint32
		op   uint16
		tok  Token
		call bool
		to   []uint32
	}{{0, OpLdstr, 0x70000001, false, nil}, {5, OpCall, 0x0a000002, true, nil}, {10, 0x2b, 0, false, []uint32{0}},
		{12, 0x38, 0xfffffffb, false, []uint32{12}}, {17, 0x45, 0, false, []uint32{30, 31}}, {30, 0xfe06, 0x06000003, false, nil}}
	if len(list) != len(want) {
		t.Fatalf("%d instructions: %+v", len(list), list)
	}
	for i, w := range want {
		g := &list[i]
		to := g.Jumps()
		if g.At != w.at || g.Op != w.op || g.Token() != w.tok || g.Calls() != w.call || len(to) != len(w.to) || len(to) > 0 && (to[0] != w.to[0] || to[len(to)-1] != w.to[len(to)-1]) {
			t.Errorf("instruction %d is %+v, jumps to %v; want %+v", i, *g, to, w)
		}
	}
}

func TestBody(t *testing.T) {
	for _, tt := range []struct {
		body []byte
		want int // bytes of IL; -1: none
	}{
		{[]byte{2<<2 | 2, 0x14, 0x2a}, 2},
		{[]byte{0x13, 0x30, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a}, 1},
		{[]byte{0x13, 0x30, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x2a}, -1}, // longer than what is there
		{[]byte{0x13, 0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a}, -1}, // a header of eight bytes
		{[]byte{0x01}, -1},
		{nil, -1},
	} {
		il, err := Body(memtest.Piece[arch.Addr]{At: 0x1000, Data: tt.body}, 0x1000)
		if (err == nil) != (tt.want >= 0) || err == nil && len(il) != tt.want {
			t.Errorf("%x: %x, %v", tt.body, il, err)
		}
	}
}

func FuzzInstructions(f *testing.F) {
	f.Add([]byte{0x45, 0xff, 0xff, 0xff, 0xff, 0, 0x2b, 1, 0xfe})
	f.Fuzz(func(t *testing.T, il []byte) {
		at := uint32(0)
		for _, i := range Instructions(il) {
			if i.At != at || i.Next <= at || int(i.Next) > len(il) {
				t.Fatalf("an instruction from %d to %d, behind %d", i.At, i.Next, at)
			}
			at = i.Next
			i.Jumps()
		}
		Body(memtest.Piece[arch.Addr]{At: 0x1000, Data: il}, 0x1000)
	})
}
