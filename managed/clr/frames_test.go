package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// TestFramesLeadToManagedCode: what the Frames of real threads restore is a place
// in managed code, with a stack pointer on the thread's own stack.
func TestFramesLeadToManagedCode(t *testing.T) {
	for name, want := range map[string]map[FrameKind]int{
		"net10-scenarios":   {InlinedCallFrame: 100, SoftwareExceptionFrame: 10, FaultingExceptionFrame: 3, RedirectedThreadFrame: 3},
		"net10-hello-arm64": {InlinedCallFrame: 5, SoftwareExceptionFrame: 2, FaultingExceptionFrame: 1},
		"net10-busy-b":      {DynamicHelperFrame: 1},
	} {
		r := readFixture(t, name).edited(nil)
		got := map[FrameKind]int{}
		ts := threadsOf(t, r)
		for i := range ts {
			for _, f := range framesOf(r, &ts[i]) {
				var regs arch.Regs
				exact, ok := r.restore(f, &regs)
				if !ok {
					continue
				}
				pc, _ := regs.Get(r.arch.PC)
				sp, _ := regs.Get(r.arch.SP)
				at := arch.PC{Addr: arch.Addr(pc), Exact: exact}
				c, _ := r.CodeAt(at.Lookup())
				on, known := ts[i].OnStack(arch.Addr(sp))
				if !c.Managed() || !on || !known {
					t.Errorf("%s: a %v at %v leads to %v, %v, stack pointer %#x", name, f.Kind, f.Addr, at, c.Kind, sp)
				}
				got[f.Kind]++
			}
		}
		for kind, n := range want {
			if got[kind] < n {
				t.Errorf("%s: %d Frames of kind %v, want %d", name, got[kind], kind, n)
			}
		}
	}
}

// firstFrame returns the newest Frame of a kind, and its thread.
func firstFrame(t *testing.T, r *Runtime, kind FrameKind) (Frame, *code.Thread) {
	t.Helper()
	ts := threadsOf(t, r)
	for i := range ts {
		for _, f := range framesOf(r, &ts[i]) {
			var regs arch.Regs
			if _, ok := r.restore(f, &regs); f.Kind == kind && (ok || !kind.savesRegs()) {
				return f, &ts[i]
			}
		}
	}
	t.Fatalf("no %v", kind)
	return Frame{}, nil
}

// TestEditedFrames changes words of Frames, whose places in .NET 10 for Linux on
// x86-64 stand here as numbers, and takes them away: a Frame restores what it
// holds, and nothing that is missing.
func TestEditedFrames(t *testing.T) {
	fx := readFixture(t, "net10-scenarios")
	const there = 0x7fff_1234_5678
	for _, w := range []struct {
		kind  FrameKind
		off   arch.Addr
		reg   arch.Reg
		needs bool // nothing is restored without the word
	}{
		{InlinedCallFrame, 24, arch.AMD64.SP, true},
		{InlinedCallFrame, 32, arch.AMD64.PC, true},
		{InlinedCallFrame, 40, arch.AMD64.FP, false},
		{FaultingExceptionFrame, 32 + 0xf8, arch.AMD64.PC, true}, // Rip of its CONTEXT
		{FaultingExceptionFrame, 32 + 0x98, arch.AMD64.SP, true},
		{FaultingExceptionFrame, 32 + 0xa0, arch.AMD64.FP, false},
	} {
		f, _ := firstFrame(t, fx.edited(nil), w.kind)
		var regs arch.Regs
		if _, ok := fx.set(f.Addr+w.off, there).restore(f, &regs); !ok {
			t.Errorf("%v+%d changed: nothing is restored", w.kind, w.off)
		} else if v, _ := regs.Get(w.reg); v != there {
			t.Errorf("%v+%d changed: the register is %#x", w.kind, w.off, v)
		}
		_, ok := fx.without(f.Addr+w.off, 8).restore(f, &regs)
		if _, known := regs.Get(w.reg); known || ok == w.needs {
			t.Errorf("%v+%d taken away: the register is known: %v; restored: %v", w.kind, w.off, known, ok)
		}
	}
	f, th := firstFrame(t, fx.edited(nil), InlinedCallFrame)
	var regs arch.Regs
	if _, ok := fx.set(f.Addr+32, 0).restore(f, &regs); ok {
		t.Error("a Frame that is in no call leads somewhere")
	}
	r := fx.set(f.Addr, 0x77) // its identifier
	if changed, _ := r.Replay().FrameAt(f.Addr); changed.Kind != UnknownFrame || changed.Next != f.Next {
		t.Errorf("with an identifier that no class has: %+v", changed)
	}
	r = fx.set(f.Addr+8, uint64(f.Addr)) // its link
	if fs := framesOf(r, th); len(fs) >= len(framesOf(fx.edited(nil), th)) {
		t.Errorf("a chain that turns back has %d Frames", len(fs))
	}
}

// TestSoftwareExceptionFrame: registers of a managed throw come out of the slots
// that the Frame points to, not out of its CONTEXT; a pointer that leads out of the
// helper's frame is not followed.
func TestSoftwareExceptionFrame(t *testing.T) {
	fx := readFixture(t, "net10-scenarios")
	whole := fx.edited(nil)
	f, _ := firstFrame(t, whole, SoftwareExceptionFrame)
	at := field(f.Addr, whole.frameLayout.softwarePointers+whole.arch.ContextPointers.Fields[0].Off)
	reg := whole.arch.ContextPointers.Fields[0].Reg
	slot, _ := whole.word(at)
	var was, now arch.Regs
	whole.restore(f, &was)
	if v, ok := was.Get(reg); slot == 0 || !ok {
		t.Fatalf("register %v is %#x, %v, in the slot at %#x", reg, v, ok, slot)
	}
	fx.set(arch.Addr(slot), 0x1122334455667788).restore(f, &now)
	if v, _ := now.Get(reg); v != 0x1122334455667788 {
		t.Errorf("with its slot changed the register is %#x", v)
	}
	fx.set(at, uint64(f.Addr)-64).restore(f, &now)
	if v, ok := now.Get(reg); ok {
		t.Errorf("with a pointer below the Frame the register is %#x", v)
	}
}
