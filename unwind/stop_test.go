package unwind

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// A scene is an image with one function at synthBase+0x100, whose CFA is 16
// above SP at a call, and a stack of words.
func scene(a *arch.Arch, words ...uint64) (*synth, *arch.Regs) {
	fde := asm{}.u8(cfaDefCFAOffset, 16)
	if a.LR != arch.NoReg {
		fde = fde.u8(cfaOffset|uint8(a.LR), 1)
	}
	m := newSynth(a, objfile.PtrDataRel|objfile.PtrS4, []function{{lo: synthBase + 0x100, size: 0x40, fde: fde}})
	var b asm
	for _, w := range words {
		b = b.u64(w)
	}
	m.add(0x7000, b)
	var r arch.Regs
	r.Set(a.PC, synthBase+0x110)
	r.Set(a.SP, 0x7000)
	return m, &r
}

func TestStops(t *testing.T) {
	const in, out, alone = synthBase + 0x120, 0x12345678, synthBase + 0x800
	tests := []struct {
		name   string
		words  []uint64
		change func(m *synth, r *arch.Regs, o *Options)
		frames int
		want   Stop
	}{
		{name: "zero", words: []uint64{1, in, 2, 0}, frames: 2, want: Stop{Reason: ZeroReturn, PC: in, At: 0x7018, By: ByEhFrame}},
		{name: "bad return address", words: []uint64{1, in, 2, 0x200000002}, frames: 2, want: Stop{Reason: BadReturnAddress, PC: in, At: 0x7018, By: ByEhFrame},
			change: func(_ *synth, _ *arch.Regs, o *Options) {
				o.Code = func(pc arch.PC) bool { return pc.Addr >= synthBase && pc.Addr < synthBase+0x1000 }
			}},
		{name: "hole", words: []uint64{1, in, 2}, frames: 2, want: Stop{Reason: MemoryMissing, PC: in, At: 0x7018, By: ByEhFrame}},
		{name: "unknown code", words: []uint64{1, out}, frames: 2, want: Stop{Reason: UnknownCode, PC: out, At: out}},
		{name: "no rule", words: []uint64{1, alone}, frames: 2, want: Stop{Reason: NoRule, PC: alone, At: alone}},
		{name: "limit", words: []uint64{1, in, 2, in, 3, in}, frames: 2, want: Stop{Reason: FrameLimit, PC: in},
			change: func(_ *synth, _ *arch.Regs, o *Options) { o.MaxFrames = 2 }},
		{name: "no registers", want: Stop{Reason: NotStarted},
			change: func(_ *synth, r *arch.Regs, _ *Options) { *r = arch.Regs{} }},
		{name: "no header", words: []uint64{1, in}, frames: 1, want: Stop{Reason: InfoMissing, PC: synthBase + 0x110, At: synthHdr, By: ByEhFrame},
			change: func(m *synth, _ *arch.Regs, _ *Options) { m.Pieces = m.Without(synthHdr) }},
		{name: "no frames", words: []uint64{1, in}, frames: 1, want: Stop{Reason: InfoMissing, PC: synthBase + 0x110, At: synthEH + 0x19, By: ByEhFrame},
			change: func(m *synth, _ *arch.Regs, _ *Options) { cut(m, synthEH, 0x19) }},
		{name: "no image", words: []uint64{1, in}, frames: 1, want: Stop{Reason: InfoMissing, PC: synthBase + 0x110, At: synthBase},
			change: func(m *synth, _ *arch.Regs, _ *Options) { m.Pieces, m.tables = m.Pieces[3:], nil }},
		{name: "broken", words: []uint64{1, in}, frames: 1, want: Stop{Reason: BadInfo, PC: synthBase + 0x110, At: synthEH, By: ByEhFrame},
			change: func(m *synth, _ *arch.Regs, _ *Options) { m.View(synthEH, 10)[8] = 77 }},
	}
	for _, tt := range tests {
		m, r := scene(arch.AMD64, tt.words...)
		var o Options
		if tt.change != nil {
			tt.change(m, r, &o)
		}
		fs, stop := m.unwinder(&o).NewWalker().Walk(nil, r)
		if len(fs) != tt.frames || stop != tt.want {
			t.Errorf("%s: got %d frames, %+v, want %d, %+v", tt.name, len(fs), stop, tt.frames, tt.want)
		}
	}
}

func cut(m *synth, at arch.Addr, n int) {
	for i := range m.Pieces {
		if m.Pieces[i].At == at {
			m.Pieces[i].Data = m.Pieces[i].Data[:n]
		}
	}
}

// What was read before a stack turned out to have a hole is not lost: a
// register whose word is missing is named only when it is needed.
func TestHoleIsNamedWhenNeeded(t *testing.T) {
	m := newSynth(arch.AMD64, objfile.PtrDataRel|objfile.PtrS4, []function{
		{lo: synthBase + 0x100, size: 0x40, fde: asm{}.u8(cfaDefCFAOffset, 24, cfaOffset|6, 2)},
		{lo: synthBase + 0x200, size: 0x40, fde: asm{}.u8(cfaDefCFAOffset, 16)},
		{lo: synthBase + 0x300, size: 0x40, fde: asm{}.u8(cfaDefCFA, 6, 16, cfaOffset|6, 2)},
	})
	m.add(0x7010, asm{}.u64(synthBase+0x210).u64(1).u64(synthBase+0x310)) // rbp's word, at 0x7008, is missing
	var r arch.Regs
	r.Set(16, synthBase+0x110)
	r.Set(7, 0x7000)
	r.Set(6, 0x7777)
	fs, stop := m.unwinder(nil).NewWalker().Walk(nil, &r)
	if len(fs) != 3 || stop.Reason != MemoryMissing || stop.At != 0x7008 {
		t.Errorf("%d frames, %+v", len(fs), stop)
	}
}

// A register that no callee saved, as rax, is not known in a caller.
func TestUnknownRegister(t *testing.T) {
	m := newSynth(arch.AMD64, objfile.PtrDataRel|objfile.PtrS4, []function{
		{lo: synthBase + 0x100, size: 0x40, fde: asm{}.u8(cfaDefCFAOffset, 16)},
		{lo: synthBase + 0x200, size: 0x40, fde: asm{}.u8(cfaDefCFA, 0, 16)},
	})
	m.add(0x7000, asm{}.u64(1).u64(synthBase+0x210))
	var r arch.Regs
	r.Set(16, synthBase+0x110)
	r.Set(7, 0x7000)
	r.Set(0, 0x7100)
	fs, stop := m.unwinder(nil).NewWalker().Walk(nil, &r)
	if len(fs) != 2 || stop.Reason != RegisterUnknown {
		t.Errorf("%d frames, %+v", len(fs), stop)
	}
}

// The slot of a hijacked return address holds what it should not; what it
// meant counts, whether the step has a rule or not, and even if the slot is
// missing.
func TestHijack(t *testing.T) {
	for _, words := range [][]uint64{{1, 0xbad, 2, 0, 3, 0}, {1}} {
		m, r := scene(arch.AMD64, words...)
		if len(words) == 1 {
			m.add(0x7010, asm{}.u64(2).u64(0).u64(3).u64(0))
		}
		w := m.unwinder(nil).NewWalker()
		w.Start(r, true, []Hijack{{Slot: 0x6000}, {Slot: 0x7008, Return: synthBase + 0x130, SP: 0x7010}})
		if !w.Next() || w.Frame() != (Frame{arch.PC{Addr: synthBase + 0x130}, 0x7010, ByEhFrame}) {
			t.Errorf("got %+v, %+v", w.Frame(), w.Stop())
		}
		if w.Next() || w.Stop().Reason != ZeroReturn {
			t.Errorf("got %+v, %+v", w.Frame(), w.Stop())
		}
	}
}

// A handler on an alternate stack above or below the one it interrupted: the
// caller's pc is exact, all its registers are known. The trampoline is looked
// up at its first byte when the byte before has no information, or another's.
func TestSignals(t *testing.T) {
	for _, a := range arch.All() {
		for i, tr := range a.On(arch.Linux).SigReturns {
			testSignal(t, a.On(arch.Linux), i, tr)
		}
	}
}

func testSignal(t *testing.T, abi *arch.ABI, i int, tr arch.SigReturn) {
	a := abi.Arch
	for _, main := range []uint64{0x6000, 0x9000} {
		fde := asm{}.u8(cfaDefCFAOffset, 16)
		if a.LR != arch.NoReg {
			fde = fde.u8(cfaOffset|uint8(a.LR), 1)
		}
		m := newSynth(a, objfile.PtrDataRel|objfile.PtrS4, []function{
			{lo: synthBase + 0x100, size: 0x40, fde: fde},
			{lo: synthBase + 0x200, size: 0x10, aug: "zRS"},
		})
		copy(m.View(synthBase+0x200, len(tr.Code)), tr.Code)
		copy(m.View(synthBase+0x140, len(tr.Code)), tr.Code)
		// One that a signal FDE covers, one in no table that begins
		// right behind another function.
		for _, at := range []uint64{synthBase + 0x200, synthBase + 0x140} {
			ctx := make(asm, tr.Context+abi.Signal.Size)
			for _, f := range abi.Signal.Fields {
				v := 0x1000 + uint64(f.Reg)
				switch f.Reg {
				case a.PC:
					v = synthBase + 0x100 // about to run its first instruction
				case a.SP:
					v = main
				}
				binary.LittleEndian.PutUint64(ctx[tr.Context+f.Off:], v)
			}
			m.Pieces = m.Without(0x7000)
			m.add(0x7000, asm{}.u64(1).u64(at).bytes(ctx))
			var r arch.Regs
			r.Set(a.PC, synthBase+0x110)
			r.Set(a.SP, 0x7000)
			w := m.unwinder(nil).NewWalker()
			w.Start(&r, true, nil)
			for range 2 { // to the trampoline, and behind it
				if !w.Next() {
					t.Fatalf("%s: trampoline %d at %#x: %+v", a.Name, i, at, w.Stop())
				}
			}
			if f := w.Frame(); f.PC != (arch.PC{Addr: synthBase + 0x100, Exact: true}) || uint64(f.SP) != main {
				t.Errorf("%s: trampoline %d at %#x: %+v", a.Name, i, at, f)
			}
			if got := w.Regs().Len(); got != len(abi.Signal.Fields) {
				t.Errorf("%s: trampoline %d: %d registers known, want %d", a.Name, i, got, len(abi.Signal.Fields))
			}
		}
	}
}

// A stack whose signal frames lead round in a circle ends.
func TestSignalCircle(t *testing.T) {
	a, abi := arch.AMD64, arch.AMD64.On(arch.Linux)
	m := newSynth(a, objfile.PtrDataRel|objfile.PtrS4, nil)
	copy(m.View(synthBase+0x140, 9), abi.SigReturns[0].Code)
	ctx := make(asm, abi.Signal.Size)
	for _, f := range abi.Signal.Fields {
		v := uint64(0x7000)
		if f.Reg == a.PC {
			v = synthBase + 0x140
		}
		binary.LittleEndian.PutUint64(ctx[f.Off:], v)
	}
	m.add(0x7000, ctx)
	var r arch.Regs
	r.Set(a.PC, synthBase+0x140)
	r.Set(a.SP, 0x7000)
	fs, stop := m.unwinder(nil).NewWalker().Walk(nil, &r)
	if stop.Reason != NoProgress || len(fs) > maxSwitches+2 {
		t.Errorf("%d frames, %+v", len(fs), stop)
	}
}

// The frame pointer is followed only on request, and says so.
func TestGuess(t *testing.T) {
	const alone = synthBase + 0x800
	m, r := scene(arch.AMD64, 1, 2, 0x7020, synthBase+0x120, 3, 0)
	r.Set(16, alone)
	r.Set(6, 0x7010)
	if _, stop := m.unwinder(nil).NewWalker().Walk(nil, r); stop.Reason != NoRule {
		t.Errorf("without: %+v", stop)
	}
	fs, _ := m.unwinder(&Options{Guess: true}).NewWalker().Walk(nil, r)
	if len(fs) < 2 || fs[1].By != ByFramePointer {
		t.Errorf("with: %+v", fs)
	}
}

// pages is a PE image's directory of functions, with codes that a test makes up.
func TestPdata(t *testing.T) {
	a := *arch.AMD64
	a.PE = arch.PECodes{Entry: 12,
		Function: func(b []byte) arch.PEFunction {
			u := binary.LittleEndian.Uint32
			return arch.PEFunction{Begin: u(b), End: u(b[4:]), Unwind: u(b[8:])}
		},
		Rule: func(q *arch.PEQuery, r *arch.Rule) arch.PEResult {
			switch q.Func.Unwind {
			case 1:
				return arch.PEResult{Status: arch.PEMissing, At: 0x1111}
			case 2:
				return arch.PEResult{Status: arch.PEBad, At: 0x2222}
			case 5:
				*r = arch.Rule{Base: q.Mem.(*synth).arch.SP, Offset: 5}
				return arch.PEResult{Status: arch.PENoCode, At: 0x5555}
			}
			*r = arch.Rule{Base: q.Mem.(*synth).arch.SP, Offset: int32(q.Func.Unwind), RA: arch.NoReg}
			r.Save(16, -8)
			return arch.PEResult{}
		}}
	var dir asm
	for i := range uint32(8) {
		dir = dir.u32(0x100 * (i + 1)).u32(0x100*(i+1) + 0x40).u32(i)
	}
	m := &synth{arch: &a, span: arch.Span{Lo: synthBase, Hi: synthEnd}, bias: synthBase}
	m.tables = map[string]arch.Span{".pdata": {Lo: synthEH, Hi: synthEH + arch.Addr(len(dir)) + 24}}
	m.add(synthEH, dir.bytes(make([]byte, 24))) // padded with zeros
	m.add(synthBase, make([]byte, 16))
	u := New(&arch.ABI{OS: arch.Windows, Arch: &a}, m, []Image{m}, nil)
	for _, tt := range []struct {
		pc   arch.PC
		off  int32
		out  Outcome
		want Reason
	}{
		{arch.PC{Addr: synthBase + 0x400, Exact: true}, 3, UseRule, 0},
		{arch.PC{Addr: synthBase + 0x440}, 3, UseRule, 0},
		{arch.PC{Addr: synthBase + 0x440, Exact: true}, 8, UseRule, 0}, // a leaf
		{arch.PC{Addr: synthBase + 0x450}, 0, NoInfo, NoRule},          // leaves call nothing
		{arch.PC{Addr: synthBase + 0x850, Exact: true}, 8, UseRule, 0},
		{arch.PC{Addr: synthBase + 0x210, Exact: true}, 0, Broken, InfoMissing},
		{arch.PC{Addr: synthBase + 0x310, Exact: true}, 0, Broken, BadInfo},
		{arch.PC{Addr: synthBase + 0x610, Exact: true}, 0, Broken, InfoMissing}, // its code is missing
	} {
		r, _, out, why := u.RuleAt(tt.pc)
		if out != tt.out || r.Offset != tt.off || why.Reason != tt.want {
			t.Errorf("%v: %v %+v %+v", tt.pc, out, r, why)
		}
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.Doc() == "" || seen[r.String()] || strings.ToLower(r.String()) != r.String() {
			t.Errorf("reason %d: %q, %q", r, r, r.Doc())
		}
		seen[r.String()] = true
	}
	for b := range numBys {
		if b.String() == "" {
			t.Errorf("By %d has no name", b)
		}
	}
}
