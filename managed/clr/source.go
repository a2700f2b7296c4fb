package clr

import (
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// Source returns what leaves managed code by its unwind codes. It knows
// nothing of native code.
func (r *Runtime) Source() unwind.Source { return source{r} }

type source struct{ r *Runtime }

func (s source) Unwind(st *unwind.Step) unwind.Outcome {
	c, missing := s.r.Lookup(st.PC.Lookup())
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

// Orphans returns what leaves JIT-compiled methods whose code header the dump
// lacks, by the instructions of their prologue. createdump writes the headers
// that its own walk has touched, and that loses threads (see [Replay.OrphanMethod]).
// It is to be asked before [Runtime.Source], for which such a method is a hole.
func (r *Runtime) Orphans() unwind.Source { return orphans{r} }

type orphans struct{ r *Runtime }

func (s orphans) Unwind(st *unwind.Step) unwind.Outcome {
	// Only from behind a call: where in a prologue or an epilogue a pc
	// stands, the codes would have to say.
	if st.PC.Exact || st.Arch.Prologue == nil {
		return unwind.NoInfo
	}
	c, missing := s.r.Lookup(st.PC.Lookup())
	if c.Kind != JIT || missing == 0 || c.Body.Lo != 0 || c.Start == 0 {
		return unwind.NoInfo
	}
	if !st.Arch.Prologue(st.Mem, c.Start, st.PC.Addr, &st.Rule) {
		return unwind.NoInfo
	}
	return unwind.UseRule
}

// An orphanIndex remembers the methods of orphans: to find one may mean to
// look through all precodes.
type orphanIndex struct {
	once   sync.Once
	replay *Replay
	mu     sync.Mutex
	method map[arch.Addr]arch.Addr // by the start of its code
}

// orphanMethod returns the MethodDesc of the method whose code begins at
// start, 0 if no precode leads there.
func (r *Runtime) orphanMethod(start arch.Addr) arch.Addr {
	x := &r.orphans
	x.once.Do(func() { x.replay, x.method = r.Replay(), map[arch.Addr]arch.Addr{} })
	x.mu.Lock()
	defer x.mu.Unlock()
	md, ok := x.method[start]
	if !ok {
		md = x.replay.OrphanMethod(start)
		x.method[start] = md
	}
	return md
}
