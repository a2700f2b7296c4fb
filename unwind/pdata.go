package unwind

import "github.com/seamwalk/seam/arch"

// pdata finds the RUNTIME_FUNCTIONs of a PE image in its exception directory,
// sorted by address, and searches it where it lies.
type pdata struct {
	arch  *arch.Arch
	mem   Memory
	table arch.Span
	base  arch.Addr
}

func openPdata(u *Unwinder, img Image) Source {
	t, ok := img.Table(".pdata")
	if !ok || u.arch.PE.Entry == 0 {
		return nil
	}
	return &pdata{arch: u.arch, mem: u.mem, table: t, base: arch.Addr(img.Bias())}
}

func (t *pdata) Unwind(s *Step) Outcome {
	size := t.arch.PE.Entry
	rva := uint64(s.PC.Lookup() - t.base)
	var fn arch.PEFunction
	lo, hi := 0, int(uint64(t.table.Hi-t.table.Lo)/uint64(size))
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		at := t.table.Lo + arch.Addr(m*size)
		b := t.mem.View(at, size)
		if b == nil {
			return s.broken(InfoMissing, arch.FirstMissing(t.mem, at, size))
		}
		if f := t.arch.PE.Function(b); uint64(f.Begin) <= rva && f.Begin != 0 {
			fn, lo = f, m+1
		} else {
			// Or zeros, which pad a directory that was made too large.
			hi = m
		}
	}
	if fn.Begin == 0 || fn.End != 0 && rva >= uint64(fn.End) {
		return t.leaf(s)
	}
	s.Query = arch.PEQuery{Mem: t.mem, Base: t.base, Func: fn, PC: s.PC}
	switch r := t.arch.PE.Rule(&s.Query, &s.Rule); r.Status {
	case arch.PEOK:
		return UseRule
	case arch.PEMissing, arch.PENoCode:
		// Without its code an epilogue cannot be told from a body, and the rule
		// of the one is wrong in the other.
		return s.broken(InfoMissing, r.At)
	default:
		return s.broken(BadInfo, r.At)
	}
}

// leaf answers for code that no entry covers. On Windows that is a function
// that calls nothing and saves nothing (x64 exception handling, "leaf
// functions"), so that a pc found by a return address cannot be in one.
func (t *pdata) leaf(s *Step) Outcome {
	if !s.PC.Exact {
		return NoInfo
	}
	s.Rule = justCalled(t.arch)
	return UseRule
}

// justCalled returns the rule that holds at the first instruction of a
// function, by how a call works on a.
func justCalled(a *arch.Arch) arch.Rule {
	r := arch.Rule{Base: a.SP, RA: a.LR}
	if a.LR == arch.NoReg {
		r.Offset = int32(a.Word)
		r.Save(a.PC, int32(-a.Word))
	}
	return r
}
