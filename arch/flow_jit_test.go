package arch_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// TestLeaveBodyOfEveryMethod asks LeaveBody behind every call of every method and
// funclet that the JIT has compiled in recorded processes, and holds what it
// says against the method's own unwind codes.
func TestLeaveBodyOfEveryMethod(t *testing.T) {
	if testing.Short() {
		t.Skip("follows 250,000 calls")
	}
	t.Parallel()
	for _, path := range corpus.Dumps(t, `^net10-[^/]*-(x64|arm64)/|^azmcp`) {
		p, err := loader.Open(path, nil)
		if err != nil {
			continue // of a format that is not read
		}
		name, _ := filepath.Rel(corpus.Path(t), path)
		rts, _ := clr.Open(p)
		for _, rt := range rts {
			n := bodies{t: t, p: p, rt: rt, src: rt.Source()}
			rt.Compiled(func(m code.Compiled) bool {
				if m.Kind != code.CompiledStub {
					n.method(m.Span)
				}
				return true
			})
			t.Logf("%s: %d calls, %d right, %d refused, %d wrong; %d in funclets, %d right", name, n.calls, n.right, n.refused, n.wrong, n.inFunclets, n.rightFunclets)
		}
		p.Close()
	}
}

type bodies struct {
	t   *testing.T
	p   *loader.Process
	rt  *clr.Runtime
	src unwind.Source

	calls, right, refused, wrong int
	inFunclets, rightFunclets    int
}

// method asks behind each call of the method whose code is in span.
func (n *bodies) method(span arch.Span) {
	var c clr.Code
	for at := span.Lo; at < span.Hi; {
		if !c.Body.Has(at) {
			if c, _ = n.rt.CodeAt(at); c.Kind != code.JIT || c.Body.Lo == 0 {
				return
			}
			if c.Body.Hi == 0 {
				c.Body.Hi = span.Hi
				if n.p.Arch.PE.Entry != 8 {
					return
				}
			}
		}
		size, call := arch.FollowStep(n.p.Arch, n.p.Memory, at)
		if size == 0 {
			return // of a page that the dump lacks, or not known
		}
		if at += arch.Addr(size); call {
			n.behind(at)
		}
	}
}

func (n *bodies) behind(pc arch.Addr) {
	st := unwind.Step{PC: arch.PC{Addr: pc}, Mem: n.p.Memory, Arch: n.p.Arch}
	c, _ := n.rt.CodeAt(pc - 1)
	if n.src.Unwind(&st) != unwind.UseRule {
		return // its codes are not in the dump
	}
	n.calls++
	if c.Funclet {
		n.inFunclets++
	}
	var r arch.Rule
	switch {
	case !n.p.Arch.LeaveBody(n.p.Memory, pc, &r):
		n.refused++
	case !same(&r, &st.Rule):
		n.wrong++
		if n.wrong < 10 {
			n.t.Errorf("behind the call at %v of the method at %v: %+v, want %+v", pc, c.Start, r, st.Rule)
		}
	default:
		n.right++
		if c.Funclet {
			n.rightFunclets++
		}
	}
}

// same reports whether two rules say the same. Where one counts from the stack
// pointer and the other from the frame pointer, that is so of what they say of
// the saved registers.
func same(a, b *arch.Rule) bool {
	x, y := slices.Clone(a.Saved[:a.N]), slices.Clone(b.Saved[:b.N])
	by := func(a, b arch.Slot) int { return cmp.Compare(a.Reg, b.Reg) }
	slices.SortFunc(x, by)
	slices.SortFunc(y, by)
	return (a.Base != b.Base || a.Offset == b.Offset) && a.RA == b.RA && slices.Equal(x, y)
}
