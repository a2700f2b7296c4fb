package arch

import "testing"

// TestLayouts checks of every CPU that each layout holds what it needs to go
// on, in its own place, and gives back what was put in.
func TestLayouts(t *testing.T) {
	for _, a := range All() {
		saved := a.On(Linux).CalleeSaved | a.On(Windows).CalleeSaved | Regset(a.FP)
		checkLayout(t, a, "prstatus", &a.On(Linux).PRStatus, saved|Regset(a.PC, a.SP))
		checkLayout(t, a, "signal", &a.On(Linux).Signal, saved|Regset(a.PC, a.SP))
		checkLayout(t, a, "context", &a.Context, saved|Regset(a.PC, a.SP))
		checkLayout(t, a, "context pointers", &a.ContextPointers, saved)
	}
}

// checkLayout checks that l has the registers of need.
func checkLayout(t *testing.T, a *Arch, name string, l *Layout, need RegSet) {
	var in, out Regs
	at := map[int]Reg{}
	for i, f := range l.Fields {
		if f.Off%8 != 0 || f.Off+8 > l.Size {
			t.Errorf("%s %s: %s lies at %d of %d", a.Name, name, a.RegName(f.Reg), f.Off, l.Size)
		}
		if r, twice := at[f.Off]; twice || in.Known().Has(f.Reg) {
			t.Errorf("%s %s: %s and %s, or one of them twice", a.Name, name, a.RegName(f.Reg), a.RegName(r))
		}
		at[f.Off] = f.Reg
		in.Set(f.Reg, uint64(i)*0x0101010101)
	}
	if in.Known()&need != need {
		t.Errorf("%s %s lacks %#x", a.Name, name, need&^in.Known())
	}
	b := make([]byte, l.Size)
	if !l.Store(b, &in) || !l.Load(b, &out) || in != out {
		t.Errorf("%s %s: put in %v, got %v", a.Name, name, in, out)
	}
	if l.Store(b[1:], &in) || l.Load(b[1:], &out) {
		t.Errorf("%s %s: %d bytes are too few", a.Name, name, len(b)-1)
	}
	in.Forget(a.FP)
	if out = (Regs{}); l.Load(b, &out) && !l.Store(b, &in) || out.Len() != len(l.Fields) {
		t.Errorf("%s %s: %d registers", a.Name, name, out.Len())
	}
}

// TestABIs checks that every row is found by its CPU and its operating system,
// once, that its registers are some that the CPU has, and that the trampolines of
// signal handlers begin where an instruction does.
func TestABIs(t *testing.T) {
	for _, abi := range abis {
		a := abi.Arch
		name := abi.OS + " on " + a.Name
		if a.On(abi.OS) != abi {
			t.Errorf("%s has two rows", name)
		}
		every := RegSet(1)<<len(a.Names) - 1
		if s := abi.CalleeSaved; s == 0 || s&^every != 0 || s.Has(a.PC) || s.Has(a.SP) || !s.Has(a.FP) {
			t.Errorf("%s: a function keeps %#x", name, s)
		}
		if abi.NativeFormat != "elf" && abi.NativeFormat != "pe" {
			t.Errorf("%s: native code lies in files of format %q", name, abi.NativeFormat)
		}
		for _, r := range abi.SigReturns {
			if len(r.Starts) == 0 || r.Starts[0] != 0 || r.Starts[len(r.Starts)-1] >= len(r.Code) || abi.Signal.Size == 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if m := abi.SignalMark; m != nil && m.Off < abi.Signal.Size {
			t.Errorf("%s: the mark lies among the registers", name)
		}
	}
	for _, a := range All() {
		if a.On(Linux) == nil || a.On(Windows) == nil || a.On("plan9") != nil {
			t.Errorf("%s: the rows of %s", a.Name, a.Name)
		}
	}
}
