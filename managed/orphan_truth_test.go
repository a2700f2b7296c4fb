package managed

import (
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A tally counts what a fallback says of frames whose truth is known.
type tally struct{ right, refused, wrong int }

func (n *tally) count(answered, right bool) {
	switch {
	case !answered:
		n.refused++
	case right:
		n.right++
	default:
		n.wrong++
	}
}

// leftBy returns the registers of the caller of the frame with regs by r. What
// the dump lacks of the saved registers is not known.
func leftBy(s *Session, regs *arch.Regs, r *arch.Rule) (out arch.Regs, ok bool) {
	a := s.Process.Arch
	base, ok := regs.Get(r.Base)
	if !ok {
		return out, false
	}
	cfa := base + uint64(int64(r.Offset))
	out = *regs
	if r.RA != arch.NoReg {
		v, _ := regs.Get(r.RA)
		out.Set(a.PC, v)
	}
	out.Keep(s.Process.ABI.CalleeSaved | 1<<a.PC)
	out.Set(a.SP, cfa)
	for _, sl := range r.Saved[:r.N] {
		if v, ok := s.Process.Memory.Word(arch.Addr(cfa + uint64(int64(sl.Off)))); ok {
			out.Set(sl.Reg, v)
		} else {
			out.Forget(sl.Reg)
		}
	}
	return out, true
}

// TestOrphansAgainstTheTruth asks what stands in for a missing code header, and
// for a missing MethodDesc, of every frame of every recorded dump that has
// them, and holds each answer against the runtime's own. docs/oracles.md has the
// figures.
func TestOrphansAgainstTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all recorded dumps")
	}
	t.Parallel()
	images := corpus.Images(t)
	type figures struct{ bodies, funclets, asBody, asBodyFunclets, names tally }
	all := map[string]*figures{}
	for _, path := range corpus.Dumps(t, `^net(8|9|10)-|^deep-dotnet|^azmcp`) {
		p, err := loader.Open(path, &loader.Options{Find: loader.DirFinder(images)})
		if err != nil {
			continue // of a format that is not read
		}
		name, _ := filepath.Rel(corpus.Path(t), path)
		s := Open(p, nil)
		n := all[p.Arch.Name]
		if n == nil {
			n = new(figures)
			all[p.Arch.Name] = n
		}
		w, seen := s.NewWalker(), map[arch.Addr]bool{}
		for i := range p.Threads {
			for ok := w.Start(&p.Threads[i]); ok; ok = w.Next() {
				f := w.Frame()
				if f.Kind != Managed || f.Code.Kind != code.JIT || f.Code.Body.Lo == 0 {
					continue
				}
				rt := f.Runtime.(*clr.Runtime)
				if c := f.Code; !seen[c.Start] {
					seen[c.Start] = true
					c.Method = 0
					rt.Complete(&c)
					n.names.count(c.Method != 0, c.Method == f.Code.Method)
					if c.Method != 0 && c.Method != f.Code.Method {
						t.Errorf("%s: the method at %v is %v, not %v", name, c.Start, f.Code.Method, c.Method)
					}
				}
				regs := *w.native.Regs()
				st := unwind.Step{PC: f.PC, Mem: p.Memory, Arch: p.Arch, Regs: regs}
				if f.PC.Exact || rt.Source().Unwind(&st) != unwind.UseRule {
					continue
				}
				want, _ := leftBy(s, &regs, &st.Rule)
				var rule arch.Rule
				ask := func(n *tally, answered bool) {
					got, ok := leftBy(s, &regs, &rule)
					if n.count(answered, ok && got == want); answered && (!ok || got != want) {
						t.Errorf("%s: thread %d, frame at %v of the method at %v (funclet %v): %+v, want %+v", name, p.Threads[i].ID, f.PC.Addr, f.Code.Start, f.Code.Funclet, rule, st.Rule)
					}
				}
				own, _ := rt.CodeAt(f.PC.Lookup())
				_, ok := rt.OrphanRule(&own, f.PC.Addr, &regs, &rule)
				_, okBody := rt.OrphanBodyRule(&own, f.PC.Addr, &regs, new(arch.Rule))
				if f.Code.Funclet {
					ask(&n.funclets, ok)
					if n.asBodyFunclets.count(okBody, false); okBody {
						t.Errorf("%s: the funclet at %v passes for the body of the method at %v", name, f.PC.Addr, f.Code.Start)
					}
				} else {
					ask(&n.bodies, ok)
					if okBody {
						rt.OrphanBodyRule(&own, f.PC.Addr, &regs, &rule)
					}
					ask(&n.asBody, okBody)
				}
			}
		}
		p.Close()
	}
	for cpu, n := range all {
		for _, row := range []struct {
			what string
			tally
		}{
			{"header missing, frames of bodies", n.bodies}, {"header missing, frames of funclets", n.funclets},
			{"header missing, bodies told by the prologue", n.asBody}, {"the same, funclets", n.asBodyFunclets},
			{"MethodDesc missing, methods by precodes", n.names},
		} {
			t.Logf("%s, %s: %d tried, %d right, %d refused, %d wrong", cpu, row.what, row.right+row.refused+row.wrong, row.right, row.refused, row.wrong)
		}
		if n.bodies.right < 1000 || n.funclets.right < 10 || n.names.right == 0 {
			t.Errorf("%s: too little was compared: %+v", cpu, *n)
		}
	}
}
