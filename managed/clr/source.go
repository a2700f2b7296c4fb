package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// Source returns what leaves managed code by its unwind codes. It knows
// nothing of native code.
func (r *Runtime) Source() unwind.Source { return source{r} }

type source struct{ r *Runtime }

func (s source) Unwind(st *unwind.Step) unwind.Outcome {
	c, missing := s.r.CodeAt(st.PC.Lookup())
	if !c.Managed() {
		return unwind.NoInfo
	}
	if missing != 0 && c.Body.Lo == 0 {
		st.Why = unwind.Stop{Reason: unwind.InfoMissing, At: missing}
		return unwind.Broken
	}
	q := &st.Query
	*q = arch.PEQuery{Mem: st.Mem, Base: c.Base, PC: st.PC,
		Func: arch.PEFunction{Begin: uint32(c.Body.Lo - c.Base), Unwind: c.Unwind}}
	if c.Body.Hi != 0 {
		q.Func.End = uint32(c.Body.Hi - c.Base)
	}
	st.Rule = arch.Rule{}
	switch res := st.Arch.PE.Rule(q, &st.Rule); res.Status {
	case arch.PEMissing, arch.PENoCode:
		// Without its code an epilogue cannot be told from a body, and
		// the rule of the one is wrong in the other.
		st.Why = unwind.Stop{Reason: unwind.InfoMissing, At: res.At}
		return unwind.Broken
	case arch.PEBad:
		st.Why = unwind.Stop{Reason: unwind.BadInfo, At: res.At}
		return unwind.Broken
	}
	return unwind.UseRule
}
