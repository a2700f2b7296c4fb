package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
)

// TestEditedReplayFrame changes what an InlinedCallFrame has besides registers: its
// Datum is a MethodDesc unless its low bits mark it as something else, and where it
// is missing that is said.
func TestEditedReplayFrame(t *testing.T) {
	fx := readFixture(t, "net10-scenarios")
	f, _ := firstFrame(t, fx.edited(nil), InlinedCallFrame)
	const datum = 16 // in .NET 10
	for _, test := range []struct {
		v    uint64
		want bool
	}{{0, false}, {0x7fff_0000, true}, {0x7fff_0001, false}, {0x7fff_0002, false}} {
		if has, missing := fx.set(f.Addr+datum, test.v).Replay().HasMethod(f); has != test.want || missing != 0 {
			t.Errorf("a Datum of %#x: a method: %v, missing %v", test.v, has, missing)
		}
	}
	if has, missing := fx.without(f.Addr+datum, 8).Replay().HasMethod(f); has || missing != f.Addr+datum {
		t.Errorf("without its Datum: a method: %v, missing %v", has, missing)
	}

	var regs arch.Regs
	r := fx.edited(nil)
	regs.Set(r.arch.FP, 0x1234)
	pc, missing := r.Replay().UpdateRegs(f, &regs)
	if c, _ := r.CodeAt(pc - 1); !c.Managed() || missing != 0 {
		t.Errorf("the Frame leads to %v, missing %v", pc, missing)
	}
	if fp, _ := regs.Get(r.arch.FP); fp == 0x1234 {
		t.Error("the frame pointer is not the Frame's")
	}
	for off, what := range map[arch.Addr]string{24: "stack pointer", 32: "return address"} {
		if _, missing := fx.without(f.Addr+off, 8).Replay().UpdateRegs(f, &regs); missing != f.Addr+off {
			t.Errorf("without its %s: missing %v", what, missing)
		}
	}
	for off, want := range map[arch.Addr]arch.Addr{0: f.Addr, 8: f.Addr + 8} {
		if _, missing := fx.without(f.Addr+off, 8).Replay().FrameAt(f.Addr); missing != want {
			t.Errorf("without the word at %d: missing %v", off, missing)
		}
	}
}

// TestContextOfFrames: the Frames that hold a CONTEXT as a whole lead to it, by
// their own bytes or by a pointer, and others have none. Its flags say that it has
// the registers of an interrupted thread.
func TestContextOfFrames(t *testing.T) {
	fx := readFixture(t, "net10-scenarios")
	r := fx.edited(nil)
	p := r.Replay()
	l, ok := p.Context()
	if !ok {
		t.Fatal("no CONTEXT")
	}
	for _, kind := range []FrameKind{FaultingExceptionFrame, RedirectedThreadFrame} {
		f, _ := firstFrame(t, r, kind)
		ctx, missing := p.ContextOf(f)
		flags, ok := r.u32(field(ctx, l.FlagsAt))
		if !ok || missing != 0 || flags&l.Whole != l.Whole {
			t.Errorf("%v: a CONTEXT at %v with flags %#x, missing %v", kind, ctx, flags, missing)
		}
		var regs arch.Regs
		if pc, _ := p.UpdateRegs(f, &regs); pc == 0 || regs.Known() == 0 {
			t.Errorf("%v leads to %v", kind, pc)
		}
		if resumes := p.Resumable(f); resumes != (kind == RedirectedThreadFrame) {
			t.Errorf("%v is resumable: %v", kind, resumes)
		}
	}
	f, _ := firstFrame(t, r, RedirectedThreadFrame)
	const pointer = 16 // to the CONTEXT, in .NET 10
	if ctx, missing := fx.without(f.Addr+pointer, 8).Replay().ContextOf(f); ctx != 0 || missing != f.Addr+pointer {
		t.Errorf("without its pointer: a CONTEXT at %v, missing %v", ctx, missing)
	}
	f, _ = firstFrame(t, r, SoftwareExceptionFrame)
	if ctx, missing := p.ContextOf(f); ctx != 0 || missing != 0 {
		t.Errorf("of a managed throw: %v, missing %v", ctx, missing)
	}
}

// TestResumableHijack: the Frame of a tripped hijack is resumable since .NET 10.
func TestResumableHijack(t *testing.T) {
	for version, want := range map[string]bool{"": true, "8.0.31": false, "9.0.20": false, "10.0.12": true, "11.0.0": true} {
		r := fakeRuntime(t, nil)
		r.release, r.use = releaseOf(version)
		if got := r.Replay().Resumable(Frame{Kind: HijackFrame}); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
