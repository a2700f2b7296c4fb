package pdb

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
)

// shipped returns the PDB of the program of which testdata has a dump.
func shipped(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/dumps/net10-hello/scenarios.pdb")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(func() []byte { return b })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Lines that the program itself has printed by Environment.StackTrace, by the
// tokens and IL offsets of its frames.
func TestLine(t *testing.T) {
	f := open(t, shipped(t))
	for range 2 { // as read, and as remembered
		for _, c := range []struct {
			rid, il uint32
			line    int
		}{
			{0xaa, 30, 63}, {0x58, 0, 75}, {0x5b, 0, 77}, {0x5a, 43, 77}, {0x60, 9, 81}, {0x18, 23, 159}, {0x1a, 8, 161},
			{0x65, 0, 86}, {0x43, 0, 259}, {0xca, 0, 254}, {0x75, 5, 103}, {0x22, 0, 170}, {0x70, 0, 98}, {0x68, 10, 89},
		} {
			if file, line, err := f.Line(c.rid, c.il); err != nil || file != "/src/Scenarios.cs" || line != c.line {
				t.Errorf("method %#x, IL %d: %s:%d, %v; want line %d", c.rid, c.il, file, line, err, c.line)
			}
		}
	}
	for _, rid := range []uint32{0, 1 << 20, ^uint32(0)} {
		if file, line, err := f.Line(rid, 0); err == nil || file != "" || line != 0 {
			t.Errorf("method %#x, which is not there: %s:%d, %v", rid, file, line, err)
		}
	}
}

// A blob of sequence points as a compiler would write it.
type blob []byte

func (b *blob) number(v uint32) *blob {
	switch {
	case v < 1<<7:
		*b = append(*b, byte(v))
	case v < 1<<14:
		*b = append(*b, byte(v>>8)|0x80, byte(v))
	default:
		*b = append(*b, byte(v>>24)|0xc0, byte(v>>16), byte(v>>8), byte(v))
	}
	return b
}

func (b *blob) signed(v int32) *blob {
	for _, bits := range []uint{6, 13, 28} {
		if v >= -(1<<bits) && v < 1<<bits {
			u := uint32(v) << 1 & (1<<(bits+1) - 1)
			if v < 0 {
				u |= 1
			}
			switch bits { // the form that it was rotated for
			case 6:
				*b = append(*b, byte(u))
			case 13:
				*b = append(*b, byte(u>>8)|0x80, byte(u))
			default:
				*b = append(*b, byte(u>>24)|0xc0, byte(u>>16), byte(u>>8), byte(u))
			}
			break
		}
	}
	return b
}

// Points of every kind: hidden ones, lines that go back, other documents, numbers
// of every size.
func TestPoints(t *testing.T) {
	var b blob
	b.number(0x11000001 & 0xffffff).number(3)              // local signature, first document
	b.number(0).number(0).number(0)                        // hidden, before any line
	b.number(1).number(0).number(5)                        // IL 1, five columns,
	b.number(20000).number(9)                              // line 20000
	b.number(200).number(2).signed(-30)                    // IL 201, three lines,
	b.signed(-19000).signed(4)                             // line 1000
	b.number(0).number(7)                                  // from here on in document 7
	b.number(70000).number(0).number(0)                    // hidden
	b.number(1).number(0).number(1).signed(63).signed(-13) // line 1063
	b.number(1).number(1).signed(-1).signed(-64).signed(0)
	b.number(1).number(1).signed(-1).signed(1 << 20).signed(1)
	want := []Point{{0, 0, 3, true}, {1, 20000, 3, false}, {201, 1000, 3, false}, {70201, 1000, 7, true},
		{70202, 1063, 7, false}, {70203, 999, 7, false}, {70204, 999 + 1<<20, 7, false}}
	got, err := Points(b, 0)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for n := range len(b) {
		if got, err := Points(b[:n], 0); err == nil && !slices.Equal(got, want[:len(got)]) {
			t.Errorf("cut to %d bytes: %+v", n, got)
		}
	}
}

// hidden puts n hidden points behind b.
func hidden(b *blob, n int) *blob {
	for range n {
		b.number(1).number(0).number(0)
	}
	return b
}

// A blob that breaks the form gives no point at all.
func TestBrokenPoints(t *testing.T) {
	head := func() *blob { var b blob; b.number(0).number(1); return &b }
	first := func() *blob { return head().number(0).number(0).number(5).number(10).number(2) }
	for name, b := range map[string]*blob{
		"order":             first().number(maxIL).number(0).number(1).signed(0).signed(0).number(maxIL).number(0).number(1).signed(0).signed(0),
		"a line below zero": first().number(1).number(0).number(1).signed(-11).signed(0),
		"a line too large":  first().number(1).number(0).number(1).signed(1 << 27).signed(0).number(1).number(1 << 28).signed(0).signed(1 << 27).signed(0),
		"the hidden line":   head().number(0).number(0).number(5).number(hiddenLine).number(2),
		"a column":          first().number(1).number(0).number(1).signed(0).signed(-3),
		"no document":       first().number(0).number(0).number(1).number(0).number(1).signed(0).signed(0),
		"cut":               first().number(1).number(0),
		"no number":         {0, 1, 0xff, 0xff},
		"too many points":   hidden(head(), maxPoints+1),
	} {
		if got, err := Points(*b, 0); err == nil || got != nil {
			t.Errorf("%s: %d points, %v", name, len(got), err)
		}
	}
	if got, err := Points(*hidden(head(), maxPoints), 0); err != nil || len(got) != maxPoints {
		t.Errorf("as many points as there may be: %d, %v", len(got), err)
	}
}

// The PDB cut anywhere, or with a byte changed, gives the lines of the whole one,
// an error, or nothing; of a changed byte it may give other lines, but no panic.
func TestDamaged(t *testing.T) {
	whole := shipped(t)
	f := open(t, whole)
	for n := 0; n < len(whole); n += 61 {
		g, err := Open(func() []byte { return whole[:n] })
		if err != nil {
			continue
		}
		for rid := uint32(1); rid < 0xd0; rid++ {
			file, line, err := g.Line(rid, 9)
			if wantFile, want, _ := f.Line(rid, 9); err == nil && (file != wantFile || line != want) {
				t.Errorf("cut to %d bytes: method %#x at %s:%d, want %s:%d", n, rid, file, line, wantFile, want)
			}
		}
	}
	for n := 0; n < len(whole); n += 97 {
		b := bytes.Clone(whole)
		b[n] ^= 0xff
		if g, err := Open(func() []byte { return b }); err == nil {
			for rid := uint32(1); rid < 0xd0; rid += 7 {
				g.Line(rid, 9)
			}
		}
	}
}

// Bytes that go away while a file is open are missing from then on.
func TestLost(t *testing.T) {
	data := shipped(t)
	f, err := Open(func() []byte { return data })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.points(0x58); err != nil { // remembered, and not which file they are in
		t.Fatal(err)
	}
	data = nil
	for _, rid := range []uint32{0xaa, 0x58} {
		if file, line, err := f.Line(rid, 30); err == nil || file != "" || line != 0 {
			t.Errorf("method %#x: %s:%d, %v", rid, file, line, err)
		}
	}
}

func FuzzLine(f *testing.F) {
	b := shipped(f)
	f.Add(b, uint32(0xaa), uint32(30))
	f.Add(b[:2000], uint32(1), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, rid, il uint32) {
		if id, err := ecma.ReadPDBID(source(func() []byte { return b }), 0, uint32(len(b))); err != nil && id != (ecma.PDBID{}) {
			t.Errorf("%v and an error", id)
		}
		p, err := Open(func() []byte { return b })
		if err != nil {
			return
		}
		if _, line, _ := p.Line(rid, il); line < 0 || line > maxLine {
			t.Errorf("line %d", line)
		}
	})
}

func FuzzPoints(f *testing.F) {
	p := open(f, shipped(f))
	for rid := uint32(1); rid < 0xd0; rid++ {
		if d, err := p.meta.MethodDebug(rid); err == nil {
			f.Add(bytes.Clone(d.Points), d.Document)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, document uint32) {
		points, err := Points(b, document)
		if len(points) > len(b) {
			t.Errorf("%d points in %d bytes", len(points), len(b))
		}
		for i := 1; i < len(points) && err == nil; i++ {
			if points[i].IL <= points[i-1].IL {
				t.Errorf("point %d at IL %d, behind %d", i, points[i].IL, points[i-1].IL)
			}
		}
	})
}

func BenchmarkLine(b *testing.B) {
	f := open(b, shipped(b))
	b.ReportAllocs()
	for b.Loop() {
		f.Line(0xaa, 30)
	}
}

var _ arch.Memory = source(nil)
