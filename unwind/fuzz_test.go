package unwind

import (
	"math/rand/v2"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// hostile walks a stack of fixed words with whatever information m has, and
// checks what must hold of every walk.
func hostile(t *testing.T, m *synth) {
	m.add(0x7000, make([]byte, 0x1000))
	stack := m.Pieces[len(m.Pieces)-1].Data
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(stack); i += 8 {
		v := uint64(synthBase + 0x100 + rnd.IntN(0x80))
		if rnd.IntN(3) == 0 {
			v = 0x7000 + uint64(rnd.IntN(0x1000))&^7
		}
		copy(stack[i:], asm{}.u64(v))
	}
	u := m.unwinder(&Options{Guess: true, MaxFrames: 1000})
	w := u.NewWalker()
	for pc := uint64(synthBase + 0xf0); pc < synthBase+0x150; pc += 5 {
		var r arch.Regs
		for i := arch.Reg(0); i < 33; i++ {
			r.Set(i, 0x7100+8*uint64(i))
		}
		r.Set(m.arch.PC, pc)
		r.Set(m.arch.SP, 0x7010)
		if !w.Start(&r, true, nil) {
			t.Fatal("not started")
		}
		down, low, last := 0, w.Low(), w.Frame()
		for n := 1; w.Next(); n++ {
			f := w.Frame()
			if w.Low() < low {
				if down++; !f.PC.Exact || down > maxSwitches {
					t.Fatalf("stack pointer fell from %v to %v", last, f)
				}
			}
			low = w.Low()
			if last = f; n > 1000 {
				t.Fatal("limit passed")
			}
		}
		if r := w.Stop().Reason; r == NotStarted || r >= numReasons {
			t.Fatalf("no reason: %+v", w.Stop())
		}
	}
}

// The bytes of .eh_frame or .debug_frame.
func FuzzFrames(f *testing.F) {
	for _, s := range shapes {
		b, _ := frames(arch.AMD64, synthEH, false, []function{{lo: synthBase + 0x100, size: 0x40, fde: s.fde}})
		f.Add([]byte(b), false)
		b, _ = frames(arch.AMD64, 0, true, []function{{lo: synthBase + 0x100, size: 0x40, fde: s.fde, version: 4, wide: true}})
		f.Add([]byte(b), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, debug bool) {
		m := &synth{arch: arch.AMD64, span: arch.Span{Lo: synthBase, Hi: synthEnd}}
		m.add(synthBase, make([]byte, 0x1000))
		if debug {
			m.files = map[string][]byte{".debug_frame": b}
		} else {
			m.add(synthEH, b)
			m.tables = map[string]arch.Span{".eh_frame": {Lo: synthEH, Hi: synthEH + arch.Addr(len(b))}}
		}
		hostile(t, m)
	})
}

// Call frame instructions of a CIE and an FDE that are otherwise well.
func FuzzInstructions(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(entryRule(arch.AMD64)), []byte(s.fde), true)
		f.Add([]byte(entryRule(arch.ARM64)), []byte(s.fde), false)
	}
	f.Fuzz(func(t *testing.T, cie, fde []byte, push bool) {
		a := arch.ARM64
		if push {
			a = arch.AMD64
		}
		hostile(t, newSynth(a, objfile.PtrDataRel|objfile.PtrS4, []function{
			{lo: synthBase + 0x100, size: 0x20, cie: cie, fde: fde},
			{lo: synthBase + 0x120, size: 0x60, cie: cie, fde: fde, aug: "zRS"}}))
	})
}

func FuzzExpression(f *testing.F) {
	f.Add([]byte{opBreg0 + 7, 8, opBreg0 + 16, 0, opLit0 + 15, opAnd, opLit0 + 11, opGe, opLit0 + 3, opShl, opPlus})
	f.Add([]byte(asm{}.u8(opConst4u).u32(synthEH).u8(opDerefSize, 2, opBra).u16(3)))
	f.Fuzz(func(t *testing.T, code []byte) {
		m := newSynth(arch.AMD64, objfile.PtrOmit, nil)
		var c cfi
		m.unwinder(nil).cfi(&c, m)
		var r arch.Regs
		r.Set(7, synthBase)
		e := &evaluator{t: &c, regs: &r}
		if _, ok := e.runOn(0x1000, code); ok && (e.bad || e.lack != 0) {
			t.Fatal("a value in spite of an error")
		}
	})
}

// The bytes of .eh_frame_hdr, and of a directory of RUNTIME_FUNCTIONs.
func FuzzTable(f *testing.F) {
	fns := []function{{lo: synthBase + 0x100, size: 0x40}, {lo: synthBase + 0x140, size: 0x40}}
	for _, enc := range []uint8{objfile.PtrDataRel | objfile.PtrS4, objfile.PtrPCRel | objfile.PtrS8, objfile.PtrULEB, objfile.PtrOmit, objfile.PtrU2} {
		m := newSynth(arch.AMD64, enc, fns)
		s := m.tables[".eh_frame_hdr"]
		f.Add(m.View(s.Lo, int(s.Hi-s.Lo)), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, hdr bool) {
		m := newSynth(arch.AMD64, objfile.PtrOmit, fns)
		m.Pieces = m.Without(synthHdr)
		m.add(synthHdr, b)
		name := ".pdata"
		if hdr {
			name = ".eh_frame_hdr"
		}
		m.bias = synthBase
		m.tables = map[string]arch.Span{name: {Lo: synthHdr, Hi: synthHdr + arch.Addr(len(b))}}
		hostile(t, m)
	})
}
