package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
)

// Offsets in the Frame of a helper of .NET 8 and 9 on x86-64, written down here
// once more.
const (
	editMethod    = 0x10
	editAttribs   = 0x18
	editEntry     = 0x28
	editPC        = 0x30
	editSP        = 0x38
	editPointers  = 0x70
	editRetAddr   = 0xa0
	editUnwound   = 0xa8
	editCapturePC = 0xd8
	editCaptureSP = 0xe0
)

// helperFixture is a dump in which threads stand in functions of the runtime that
// managed code has called.
func helperFixture(t *testing.T, name string) (*fixture, Frame) {
	t.Helper()
	core, err := coreedit.Read(corpus.Path(t, name, "dump.zst"))
	if err != nil {
		t.Fatal(err)
	}
	fx := &fixture{t, core}
	f, _ := firstFrame(t, fx.edited(nil), HelperMethodFrame)
	return fx, f
}

// TestEditedHelperFrame reads the Frame of a helper whose caller has been found: the
// slots that it points to hold the caller's registers, and it carries its method.
func TestEditedHelperFrame(t *testing.T) {
	for _, name := range []string{"net9-transitions-x64", "net8-transitions-x64"} {
		fx, f := helperFixture(t, name)
		r := fx.edited(nil)
		word := func(off arch.Addr) arch.Addr { v, _ := r.word(f.Addr + off); return arch.Addr(v) }
		var regs arch.Regs
		pc, missing := r.Replay().UpdateRegs(f, &regs)
		if c, _ := r.CodeAt(pc); !c.Managed() || missing != 0 || pc != word(editPC) {
			t.Errorf("%s: the Frame leads to %v, missing %v", name, pc, missing)
		}
		if sp, _ := regs.Get(r.arch.SP); arch.Addr(sp) != word(editSP) {
			t.Errorf("%s: its stack pointer is %#x", name, sp)
		}
		const rbp = 5 // of the six registers the last
		fp, _ := regs.Get(r.arch.FP)
		if v, _ := r.word(word(editPointers + 8*rbp)); fp != v || v == 0 {
			t.Errorf("%s: the frame pointer is %#x, its slot holds %#x", name, fp, v)
		}
		fx.set(f.Addr+editPointers+8*rbp, 0).Replay().UpdateRegs(f, &regs)
		if got, _ := regs.Get(r.arch.FP); arch.Addr(got) != word(editUnwound+8*rbp) {
			t.Errorf("%s: without a slot the frame pointer is %#x", name, got)
		}
		for _, bad := range []uint64{0x1000, uint64(f.Addr) - 8, uint64(word(editSP)), ^uint64(0)} {
			at := f.Addr + editPointers + 8*rbp
			if _, missing := fx.set(at, bad).Replay().UpdateRegs(f, &regs); missing != at {
				t.Errorf("%s: with a slot at %#x: missing %v", name, bad, missing)
			}
		}
		for _, off := range []arch.Addr{editPC, editSP, editPointers} {
			if _, missing := fx.without(f.Addr+off, 8).Replay().UpdateRegs(f, &regs); missing != f.Addr+off {
				t.Errorf("%s: without the word at %#x: missing %v", name, off, missing)
			}
		}
		if has, missing := r.Replay().HasMethod(f); !has || missing != 0 {
			t.Errorf("%s: a method: %v, missing %v", name, has, missing)
		}
		if has, _ := fx.set(f.Addr+editMethod, 0).Replay().HasMethod(f); has {
			t.Errorf("%s: a method where there is none", name)
		}
		if _, missing := fx.without(f.Addr+editMethod, 8).Replay().HasMethod(f); missing != f.Addr+editMethod {
			t.Errorf("%s: without its method: missing %v", name, missing)
		}
		if lazy, missing := r.Replay().Lazy(f, new(LazyState)); lazy || missing != 0 {
			t.Errorf("%s: its caller is to be found: %v, missing %v", name, lazy, missing)
		}
	}
}

// TestLazyHelperFrame reads the Frame of a helper whose caller nobody has looked for:
// what it has captured, how many frames are to be left, and that a function with an
// entry of its own is a method's.
func TestLazyHelperFrame(t *testing.T) {
	fx, f := helperFixture(t, "net9-transitions-x64")
	for _, c := range []struct {
		attribs uint64
		entry   uint64
		depth   int
	}{{0, 0, 0}, {0, 0x1234, 1}, {helperExactDepth, 0, 1}, {helperDepth2, 0, 0}, {helperDepth2, 0x1234, 2}, {helperDepth2 | helperExactDepth, 0, 2}} {
		r := fx.edited(func(core *coreedit.Core) {
			for off, v := range map[arch.Addr]uint64{editRetAddr: 0, editMethod: 0x4141, editAttribs: c.attribs, editEntry: c.entry} {
				if err := core.SetWord(uint64(f.Addr+off), v); err != nil {
					t.Fatal(err)
				}
			}
		})
		var s LazyState
		lazy, missing := r.Replay().Lazy(f, &s)
		pc, _ := s.Regs.Get(r.arch.PC)
		sp, _ := s.Regs.Get(r.arch.SP)
		wantPC, _ := r.word(f.Addr + editCapturePC)
		wantSP, _ := r.word(f.Addr + editCaptureSP)
		if !lazy || missing != 0 || s.Depth != c.depth || pc != wantPC || sp != wantSP+8 {
			t.Errorf("attributes %#x, entry %#x: %v, missing %v: %d frames from pc %#x, sp %#x", c.attribs, c.entry, lazy, missing, s.Depth, pc, sp)
		}
		if set := r.Replay().Saved(); set&^s.Regs.Known() != 0 || set == 0 {
			t.Errorf("captured: %b of %b", s.Regs.Known(), set)
		}
		if has, missing := r.Replay().HasMethod(f); has != (c.entry != 0) || missing != 0 {
			t.Errorf("entry %#x: a method: %v, missing %v", c.entry, has, missing)
		}
		var regs arch.Regs
		if pc, _ := r.Replay().UpdateRegs(f, &regs); pc != 0 || regs.Known() != 0 {
			t.Errorf("the Frame alone leads to %v", pc)
		}
	}
	for _, off := range []arch.Addr{editRetAddr, editCapturePC, editCaptureSP} {
		r := fx.edited(func(core *coreedit.Core) {
			core.SetWord(uint64(f.Addr+editRetAddr), 0)
			core.Hole(uint64(f.Addr+off), 8)
		})
		if _, missing := r.Replay().Lazy(f, new(LazyState)); missing != f.Addr+off {
			t.Errorf("without the word at %#x: missing %v", off, missing)
		}
	}
}
