package unwind

import (
	"testing"

	"github.com/seamwalk/seam/arch"
)

func TestExpressions(t *testing.T) {
	lit := func(v uint8) uint8 { return opLit0 + v }
	tests := []struct {
		name string
		code asm
		want uint64
		ok   bool
	}{
		{"empty leaves the CFA", nil, 0x1000, true},
		{"constants", asm{}.u8(opConst1u, 0xff, opConst1s, 0xff, opPlus), 0xfe, true},
		{"const2", asm{}.u8(opConst2u).u16(0xffff).u8(opConst2s).u16(0xfffe).u8(opPlus), 0xfffd, true},
		{"const4", asm{}.u8(opConst4u).u32(0xffffffff).u8(opConst4s).u32(0xfffffffe).u8(opPlus), 0xfffffffd, true},
		{"const8", asm{}.u8(opConst8u).u64(5).u8(opConst8s).u64(7).u8(opMul), 35, true},
		{"constu, consts", asm{}.u8(opConstu).uleb(1000).u8(opConsts).sleb(-1).u8(opPlus), 999, true},
		{"stack", asm{}.u8(lit(1), lit(2), lit(3), opRot, opPick, 2, opOver, opSwap, opDrop), 2, true},
		// PLT entries: CFA = rsp + 8 + ((rip & 15) >= 11 ? 8 : 0)
		{"PLT, late", asm{}.u8(opBreg0+7, 8, opBreg0+16, 0, lit(15), opAnd, lit(11), opGe, lit(3), opShl, opPlus), 0x2000 + 16, true},
		{"minus, neg, abs, not", asm{}.u8(lit(3), lit(5), opMinus, opAbs, opNeg, opNot), 1, true},
		{"division is signed", asm{}.u8(opConst1s, 0xf9, lit(2), opDiv, opNeg), 3, true},
		{"mod is not", asm{}.u8(opConst1s, 0xff, lit(10), opMod), 5, true},
		{"shifts", asm{}.u8(lit(1), lit(8), opShl, lit(4), opShr, opConst1s, 0xf0, lit(2), opShra, opPlus), 12, true},
		{"shifts by more than there is", asm{}.u8(lit(1), opConst1u, 200, opShl), 0, true},
		{"or, xor", asm{}.u8(lit(12), lit(10), opXor, lit(1), opOr), 7, true},
		{"comparisons are signed", asm{}.u8(opConst1s, 0xff, lit(1), opLt), 1, true},
		{"le, gt, eq, ne", asm{}.u8(lit(1), lit(1), opLe, lit(2), lit(1), opGt, opPlus, lit(2), opEq, lit(0), opNe), 1, true},
		{"bra", asm{}.u8(lit(1), opBra).u16(1).u8(opDrop, lit(9)), 9, true},
		{"bra not taken", asm{}.u8(lit(7), lit(0), opBra).u16(1).u8(lit(9)), 9, true},
		{"skip", asm{}.u8(lit(7), opSkip).u16(1).u8(opDrop), 7, true},
		{"register", asm{}.u8(opReg0 + 7), 0x2000, true},
		{"regx, bregx", asm{}.u8(opRegx, 7, opBregx, 7, 0x7f, opMinus), 1, true},
		{"addr", asm{}.u8(opAddr).u64(synthBase + 0x500), synthBase + 0x500, true},
		{"plus_uconst", asm{}.u8(opPlusUconst).uleb(300), 0x1000 + 300, true},
		{"deref", asm{}.u8(opConst4u).u32(synthEH).u8(opDeref), 0x1122334455667788, true},
		{"deref_size", asm{}.u8(opConst4u).u32(synthEH).u8(opDerefSize, 2), 0x7788, true},
		{"deref_size at the end of memory", asm{}.u8(opConst4u).u32(synthEH+7).u8(opDerefSize, 1), 0x11, true},
		{"deref_size of 3", asm{}.u8(opConst4u).u32(synthEH).u8(opDerefSize, 3), 0, false},
		{"deref of nothing", asm{}.u8(lit(8), opDeref), 0, false},
		{"unknown register", asm{}.u8(opReg0 + 1), 0, false},
		{"no such register", asm{}.u8(opRegx, 0xff, 1), 0, false},
		{"stack runs empty", asm{}.u8(opDrop, opDrop), 0, false},
		{"nothing left", asm{}.u8(opDrop), 0, false},
		{"pick from below", asm{}.u8(opPick, 1), 0, false},
		{"division by zero", asm{}.u8(lit(1), lit(0), opDiv), 0, false},
		{"mod by zero", asm{}.u8(lit(1), lit(0), opMod), 0, false},
		{"operand cut off", asm{}.u8(opConst8u, 1, 2), 0, false},
		{"for ever", asm{}.u8(opSkip).u16(0xfffd), 0, false},
		{"for ever, growing", asm{}.u8(lit(1), opSkip).u16(0xfffc), 0, false},
		{"jump out", asm{}.u8(opSkip).u16(100), 0, false},
		{"jump before", asm{}.u8(opSkip).u16(0xff00), 0, false},
		{"call_frame_cfa", asm{}.u8(0x9c), 0, false},
		{"implicit_value of 1<<40", asm{}.u8(0x9e).uleb(1 << 40), 0, false},
	}
	m := &synth{arch: arch.AMD64, span: arch.Span{Lo: synthBase, Hi: synthEnd}}
	m.add(synthEH, asm{}.u64(0x1122334455667788))
	var c cfi
	m.unwinder(nil).cfi(&c, m)
	c.sect.mem = m
	var r arch.Regs
	r.Set(7, 0x2000)
	r.Set(16, 0x40001b)
	e := &evaluator{t: &c, regs: &r}
	for _, tt := range tests {
		if got, ok := e.runOn(0x1000, tt.code); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %#x, %v, want %#x, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	if n := testing.AllocsPerRun(10, func() { e.runOn(0x1000, tests[7].code) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
