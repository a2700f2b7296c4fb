package clr

import (
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/managed/code"
)

// A method that an image keeps in two parts is one: what lies in the cold part is
// code of the hot part's method, left by its own unwind information. No recorded
// image splits methods, so a real one is given a map that says of some of its
// methods that they are cold parts of others.
func TestHotCold(t *testing.T) {
	f := readFixture(t, "net10-r2r")
	whole := f.edited(nil)
	var bodies []Code // of one image, by index, with their unwind information at hand
	whole.sections(func(s rangeSection) bool {
		bodies = nil
		for ip := s.span.Lo; s.r2r != 0 && ip < s.span.Hi; ip += 16 {
			c, missing := whole.CodeAt(ip)
			known := missing == 0 && c.Kind == code.ReadyToRun && c.Method != 0 && !c.Funclet && c.Body.Hi != 0
			if known && whole.mem.View(c.Base+arch.Addr(c.Unwind), 1) != nil && (len(bodies) == 0 || bodies[len(bodies)-1].Index < c.Index) {
				bodies = append(bodies, c)
			}
		}
		return len(bodies) < 4
	})
	if len(bodies) < 4 {
		t.Fatalf("%d methods in an image", len(bodies))
	}
	hot, last := bodies[0], bodies[len(bodies)-1]
	cold := bodies[len(bodies)-2]
	info := cold.Header
	l := &whole.codeLayout
	// The map lies where the fixture has bytes that nobody reads on the way: on a stack.
	sp, _ := whole.proc.Threads[0].Regs.Get(whole.arch.SP)
	at := arch.Addr(sp) &^ 7
	split := func(pairs ...uint32) func(c *coreedit.Core) {
		return func(c *coreedit.Core) {
			var b []byte
			for _, v := range pairs {
				b = binary.LittleEndian.AppendUint32(b, v)
			}
			n := binary.LittleEndian.AppendUint32(nil, uint32(len(pairs)))
			if c.Set(uint64(at), b) != nil || c.Set(uint64(field(info, l.R2RNumHot)), n) != nil ||
				c.SetWord(uint64(field(info, l.R2RHotCold)), uint64(at)) != nil {
				t.Fatal("the words are not in the dump")
			}
		}
	}
	chain := func(c *coreedit.Core) {
		a := cold.Base + arch.Addr(cold.Unwind)
		b := whole.mem.View(a, 1)
		if err := c.Set(uint64(a), []byte{b[0] | 4<<3}); err != nil {
			t.Fatal(err)
		}
	}
	pair := split(cold.Index, hot.Index, last.Index, hot.Index+1)
	for _, c := range []struct {
		what    string
		edit    func(c *coreedit.Core)
		funclet bool
	}{
		{"a cold funclet", pair, true},
		{"a cold part", func(c *coreedit.Core) { pair(c); chain(c) }, false},
	} {
		r := f.edited(c.edit)
		got, missing := r.CodeAt(cold.Body.Lo + 1)
		want := cold
		want.Method, want.Start, want.Index = hot.Method, hot.Start, hot.Index
		want.Cold, want.Funclet, want.FuncletKnown = true, c.funclet, true
		if got != want || missing != 0 {
			t.Errorf("%s: %+v, missing %v; want %+v", c.what, got, missing, want)
		}
		if off, ok := r.ILOffset(arch.PC{Addr: cold.Body.Lo + 1}); ok {
			t.Errorf("%s: it stands at IL offset %d", c.what, off)
		}
		if is, known := (&Replay{r: r}).Filter(&got); is || known != false && c.funclet {
			t.Errorf("%s: a filter: %v, known %v", c.what, is, known)
		}
		if got, _ := r.CodeAt(hot.Body.Lo + 1); got != hot {
			t.Errorf("%s: the hot part: %+v, want %+v", c.what, got, hot)
		}
	}
	// A map that leads up is none; of one that is not there its first byte is missing.
	if c, missing := f.edited(split(cold.Index, last.Index)).CodeAt(cold.Body.Lo + 1); c.Method != 0 || missing == 0 {
		t.Errorf("a map that leads up: %+v, missing %v", c, missing)
	}
	lost := func(c *coreedit.Core) {
		pair(c)
		if c.SetWord(uint64(field(info, l.R2RHotCold)), 0x10) != nil {
			t.Fatal("the word is not in the dump")
		}
	}
	if c, missing := f.edited(lost).CodeAt(cold.Body.Lo + 1); c.Method != 0 || missing != 0x18 {
		t.Errorf("a map that is missing: %+v, missing %v", c, missing)
	}
}
