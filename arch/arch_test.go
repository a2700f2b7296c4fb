package arch

import "testing"

// TestLayouts checks of every CPU that each layout holds what it needs to go
// on, in its own place, and gives back what was put in.
func TestLayouts(t *testing.T) {
	for _, a := range All() {
		for name, l := range map[string]*Layout{"prstatus": &a.PRStatus, "signal": &a.Signal, "context": &a.Context, "context pointers": &a.ContextPointers} {
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
			need := a.CalleeSaved | a.CalleeSavedWin | Regset(a.FP)
			if l != &a.ContextPointers {
				need |= Regset(a.PC, a.SP)
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
	}
}
