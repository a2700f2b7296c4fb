package unwind

import (
	"testing"

	"github.com/seamwalk/seam/arch"
)

// BenchmarkRuleAt finds rules that no walk has found before, through the tables
// of the C library: what the first frame in each function costs.
func BenchmarkRuleAt(b *testing.B) {
	m := openELF(b, libc(b))
	u := New(m.arch.On(arch.Linux), m, []Image{m}, nil)
	span, ok := m.Table(".text")
	if !ok {
		b.Skip("the C library has no section headers")
	}
	u.RuleAt(arch.PC{Addr: span.Lo + 64})
	pc, found := span.Lo, 0
	b.ReportAllocs()
	for b.Loop() {
		if pc += 509; pc >= span.Hi {
			pc = span.Lo + pc%509
		}
		if _, _, out, _ := u.RuleAt(arch.PC{Addr: pc}); out == UseRule {
			found++
		}
	}
	if found == 0 {
		b.Error("no rule is found")
	}
}
