package unwind

import (
	"math"

	"github.com/seamwalk/seam/arch"
)

// A finder finds FDEs by address: by a sorted table, or by an index.
type finder interface {
	// find returns where the FDE lies that may cover a, or noFDE.
	find(a arch.Addr) (arch.Addr, fault)
	// findOfAll is find among all FDEs that there are, whether the linker's
	// sorted table lists them or not.
	findOfAll(a arch.Addr) (arch.Addr, fault)
}

const noFDE = ^arch.Addr(0)

// lookup parses the FDE that covers a, if one does.
func (t *cfi) lookup(in finder, a arch.Addr, d *fde) (ok bool, f fault) {
	at, f := in.find(a)
	if at == noFDE || f.reason != 0 {
		return false, f
	}
	if f = t.parseFDE(at, d); f.reason != 0 {
		return false, f
	}
	if d.code.Hi > d.code.Lo {
		return d.code.Has(a), fault{}
	}
	// A function without any byte may share its address with the one that is
	// meant, and lld puts only the first FDE of each address in the table. Seen
	// for ten functions of a single-file .NET program for ARM64.
	at, f = in.findOfAll(a)
	if at == noFDE || f.reason != 0 {
		return false, f
	}
	f = t.parseFDE(at, d)
	return f.reason == 0 && d.code.Has(a), f
}

// row finds the FDE for pc and leaves its row for pc in sc.
func (t *cfi) row(in finder, pc arch.PC, d *fde, sc *scratch) (ok bool, f fault) {
	target := pc.Lookup()
	ok, f = t.lookup(in, target, d)
	// A signal handler returns to the first byte of the trampoline, which no
	// call precedes. glibc lets the FDE begin a byte early; where none does
	// (assembled otherwise, or made at run time), the byte before belongs to
	// nothing or to another function.
	if !pc.Exact && (!ok || d.code.Hi == pc.Addr) {
		var next fde
		if is, _ := t.lookup(in, pc.Addr, &next); is && next.cie.signal && next.code.Lo == pc.Addr {
			*d, target, ok, f = next, pc.Addr, true, fault{}
		}
	}
	if !ok || f.reason != 0 {
		return false, f
	}
	return true, t.rowAt(d, target, sc)
}

// unwind answers s by the FDE that in finds.
func (t *cfi) unwind(in finder, s *Step) Outcome {
	var d fde
	ok, f := t.row(in, s.PC, &d, &s.scratch)
	if f.reason != 0 {
		return s.broken(f.reason, f.at)
	}
	if !ok {
		return NoInfo
	}
	// A trampoline without information may begin right behind a function.
	if d.cie.signal || !s.PC.Exact && d.code.Hi == s.PC.Addr {
		if out := (signalReturn{t.abi}).Unwind(s); out != NoInfo {
			return out
		}
	}
	return t.answer(&d, s)
}

// answer turns the row of d in s.scratch into the answer to s: a rule where
// it fits one, else the caller's registers.
func (t *cfi) answer(d *fde, s *Step) Outcome {
	w := &s.scratch.row
	if w.regs[d.cie.ra].how == undefined {
		return Final
	}
	if t.rule(d, w, &s.Rule) {
		return UseRule
	}
	return t.step(d, w, s)
}

// carried returns the registers that leaving d is to restore. At a signal
// frame all are known: the kernel saved them. Elsewhere those that a call
// may clobber are not, even if the information has a rule for some (assembly
// that describes all its pushes has).
func (t *cfi) carried(d *fde) arch.RegSet {
	if d.cie.signal {
		return 1<<t.nregs - 1
	}
	return t.abi.CalleeSaved | 1<<t.arch.SP
}

// rule fits w into r, if it does fit.
func (t *cfi) rule(d *fde, w *row, r *arch.Rule) bool {
	a := t.arch
	if w.cfa.how != atOffset || !fits(w.cfa.off) || w.base >= uint64(t.nregs) {
		return false
	}
	*r = arch.Rule{Base: arch.Reg(w.base), Offset: int32(w.cfa.off), RA: arch.NoReg,
		Signal: d.cie.signal, Signed: w.signed}
	ra := arch.Reg(d.cie.ra)
	switch x := &w.regs[ra]; {
	case x.how == atOffset && fits(x.off):
		r.Save(a.PC, int32(x.off))
	case (x.how == unspecified || x.how == sameValue) && ra != a.PC:
		// A leaf, or before the prologue stored it: still in the link
		// register. In a caller that register is not known, so that a
		// function which lost its return address is not left by a stale one.
		r.RA = ra
	default:
		return false
	}
	carried := t.carried(d)
	for i := range w.regs[:t.nregs] {
		x, reg := &w.regs[i], arch.Reg(i)
		if x.how == unspecified || !carried.Has(reg) || reg == a.PC {
			continue
		}
		switch {
		case x.how == atOffset && fits(x.off):
			if !r.Save(reg, int32(x.off)) {
				return false
			}
		case x.how == sameValue && reg != a.SP && t.abi.CalleeSaved.Has(reg):
		default:
			// Undefined, in another register, an expression: vfork keeps its
			// return address in rdi, longjmp takes all from rdi's buffer.
			return false
		}
	}
	t.raise(r)
	return true
}

// raise corrects a rule whose CFA is not the caller's stack pointer, though
// nothing says so: the return address lies at the CFA or above, where the
// stack is the caller's. glibc's _dl_runtime_resolve for ARM64 has such rules
// (seen in 2.36): the PLT entry pushed x16 and x30 before jumping to it, and its
// information counts from there. The push was of whole units of 16 bytes, as
// the stack pointer of that CPU is aligned so.
func (t *cfi) raise(r *arch.Rule) {
	if r.Base != t.arch.SP || r.Signal || t.arch.LR == arch.NoReg {
		return
	}
	by := int32(-1)
	for _, sl := range r.Saved[:r.N] {
		switch {
		case sl.Reg == t.arch.SP:
			return
		case sl.Reg == t.arch.PC && sl.Off >= 0 && sl.Off < 1024:
			by = (sl.Off + int32(t.arch.Word) + 15) &^ 15
		}
	}
	if by < 0 {
		return
	}
	r.Offset += by
	for i := range r.Saved[:r.N] {
		r.Saved[i].Off -= by
	}
}

func fits(off int64) bool { return off >= math.MinInt32 && off <= math.MaxInt32 }

// step computes the caller's registers by a row that is no rule.
func (t *cfi) step(d *fde, w *row, s *Step) Outcome {
	a := t.arch
	e := &s.scratch.eval
	e.t, e.regs = t, &s.Regs
	cfa, out := t.cfa(d, w, s)
	if out == Broken {
		return out
	}
	// What nothing is said of keeps its value if calls keep it. The caller's
	// stack pointer is the CFA, unless there is a rule for it too.
	s.Out = s.Regs
	s.Out.Keep(t.abi.CalleeSaved)
	s.Out.Set(a.SP, cfa)
	carried := t.carried(d)
	for i := range w.regs[:t.nregs] {
		reg := arch.Reg(i)
		if w.regs[i].how == unspecified || !carried.Has(reg) || reg == a.PC {
			continue
		}
		if v, _, ok := t.value(d, w.regs[i], reg, cfa, s); ok {
			s.Out.Set(reg, v)
			continue
		}
		if reg == a.SP || e.bad {
			return s.lacks(e, d.at)
		}
		s.Out.Forget(reg)
		s.Holes[reg] = 0
		if e.lack == MemoryMissing {
			s.Holes[reg] = e.noWord
		}
	}
	ra := arch.Reg(d.cie.ra)
	x := w.regs[ra]
	if x.how == unspecified {
		x.how = sameValue
	}
	if ra == a.PC && x.how == sameValue {
		return s.broken(BadInfo, d.at) // it would return to itself
	}
	v, at, ok := t.value(d, x, ra, cfa, s)
	if !ok {
		return s.lacks(e, d.at)
	}
	s.Out.Set(a.PC, v)
	s.RAAt, s.Exact = at, d.cie.signal
	return Stepped
}

// cfa computes the CFA of a row. It returns Broken, and s.Why says why, where
// that cannot be done.
func (t *cfi) cfa(d *fde, w *row, s *Step) (cfa uint64, out Outcome) {
	switch w.cfa.how {
	case atOffset:
		if w.base >= uint64(t.nregs) {
			return 0, s.broken(BadInfo, d.at)
		}
		v, ok := s.Regs.Get(arch.Reg(w.base))
		if !ok {
			return 0, s.unknown(arch.Reg(w.base))
		}
		return v + uint64(w.cfa.off), Stepped
	case atExpression:
		v, ok := s.scratch.eval.run(d.expression(w.cfa))
		if !ok {
			return 0, s.lacks(&s.scratch.eval, d.at)
		}
		return v, Stepped
	}
	return 0, s.broken(BadInfo, d.at)
}

// value returns what x says that register reg of the caller is, and where it
// was read. If it is not ok, s.scratch.eval says what lacked.
func (t *cfi) value(d *fde, x cell, reg arch.Reg, cfa uint64, s *Step) (v uint64, at arch.Addr, ok bool) {
	e := &s.scratch.eval
	e.bad, e.lack = false, 0
	switch x.how {
	case sameValue:
		v = e.reg(uint64(reg))
	case inRegister:
		v = e.reg(uint64(x.off))
	case valOffset:
		v = cfa + uint64(x.off)
	case atOffset:
		at = arch.Addr(cfa + uint64(x.off))
		v = e.load(at, t.arch.Word)
	case valExpression, atExpression:
		if v, ok = e.runOn(cfa, d.expression(x)); !ok {
			e.bad = e.lack == 0
			return 0, 0, false
		}
		if x.how == atExpression {
			at = arch.Addr(v)
			v = e.load(at, t.arch.Word)
		}
	default: // undefined
		return 0, 0, false
	}
	return v, at, e.lack == 0 && !e.bad
}

// expression returns the bytes of the expression in x.
func (d *fde) expression(x cell) []byte {
	p := d.program
	if x.part == partCIE {
		p = d.cie.program
	}
	start, n := int(uint32(x.off)), int(x.off>>32)
	return p[start : start+n]
}

func (s *Step) broken(why Reason, at arch.Addr) Outcome {
	s.Why = Stop{Reason: why, At: at}
	return Broken
}

// unknown answers that r is needed and not known: because a word of the
// stack was missing where it had been saved, if it was so.
func (s *Step) unknown(r arch.Reg) Outcome {
	if at := s.Holes[r]; at != 0 {
		return s.broken(MemoryMissing, at)
	}
	return s.broken(RegisterUnknown, 0)
}

// lacks answers that e could not compute what it should.
func (s *Step) lacks(e *evaluator, at arch.Addr) Outcome {
	switch e.lack {
	case RegisterUnknown:
		return s.unknown(e.noReg)
	case MemoryMissing:
		return s.broken(MemoryMissing, e.noWord)
	}
	return s.broken(BadInfo, at)
}
