package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// Clauses of JIT-compiled code (src/coreclr/inc/corhdr.h, COR_ILMETHOD_SECT_EH
// as EE_ILEXCEPTION keeps it): their number is the word before the block.
const (
	jitClauses      = 8 // behind the block's own header
	jitClauseSize   = 32
	jitClauseFilter = 24
)

// Clauses of ReadyToRun code (docs/design/coreclr/botr/readytorun-format.md,
// READYTORUN_SECTION_EXCEPTION_INFO; CORCOMPILE_EXCEPTION_CLAUSE).
const (
	r2rClauseSize    = 24
	r2rClauseHandler = 12
	r2rClauseFilter  = 20
)

const clauseFilter = 1 // COR_ILEXCEPTION_CLAUSE_FILTER

// maxClauses bounds the exception clauses of one method.
const maxClauses = 1 << 16

// Filter reports whether c is the funclet of an exception filter: one of its
// method's clauses names the funclet's first byte as its filter. Filters run in
// the first pass, on top of the frames that they judge. known is false if the
// dump lacks the method's clauses, or what tells whether c is a funclet at all.
func (p *Replay) Filter(c *Code) (is, known bool) {
	if !c.Funclet {
		return false, c.FuncletKnown
	}
	if c.Cold {
		return false, false // clauses count from the hot part's start on, as if the parts lay together
	}
	off := uint32(c.Body.Lo - c.Start)
	if c.Kind == code.ReadyToRun {
		return p.r2rFilter(c, off)
	}
	v, ok := p.r.word(field(c.Header, p.r.replayLayout.HdrEHInfo))
	if !ok || v == 0 {
		return false, false
	}
	block := arch.Addr(v)
	n, ok := p.r.word(block - 8)
	if !ok || n > maxClauses {
		return false, false
	}
	for i := range int(n) {
		at := block + arch.Addr(jitClauses+i*jitClauseSize)
		flags, ok1 := p.r.u32(at)
		filter, ok2 := p.r.u32(at + jitClauseFilter)
		if !ok1 || !ok2 {
			return false, false
		}
		if flags&clauseFilter != 0 && filter == off {
			return true, true
		}
	}
	return false, true
}

// r2rFilter looks off up in the clauses of c's method.
func (p *Replay) r2rFilter(c *Code, off uint32) (is, known bool) {
	known = p.r.imageClauses(c, func(flags, _, filter uint32) bool {
		is = flags&clauseFilter != 0 && filter == off
		return !is
	})
	return is, known
}

// imageClauses yields the exception clauses of c's method from the table of its
// image until yield returns false: pairs of a method's RVA and that of its
// clauses, which end where the next one's begin. handler and filter are from the
// start of the method's code. It reports false if the dump lacks one of them.
func (r *Runtime) imageClauses(c *Code, yield func(flags, handler, filter uint32) bool) bool {
	section, ok := r.wholeSection(c, r2rClauses)
	if !ok {
		return false
	}
	table, pairs := c.Base+arch.Addr(section.rva), int(section.size/8)
	start := uint32(c.Start - c.Base)
	lo, hi := 0, pairs
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		b := r.linked(table+arch.Addr(8*m), 4)
		if b == nil {
			return false
		}
		if le32(b) < start {
			lo = m + 1
		} else {
			hi = m
		}
	}
	// The last pair is a sentinel that only ends the one before it.
	b := r.linked(table+arch.Addr(8*lo), 16)
	if lo >= pairs-1 || b == nil || le32(b) != start {
		return false
	}
	from, to := le32(b[4:]), le32(b[12:])
	if to < from || to-from > maxClauses*r2rClauseSize {
		return false
	}
	for rva := from; rva+r2rClauseSize <= to; rva += r2rClauseSize {
		b := r.linked(c.Base+arch.Addr(rva), r2rClauseSize)
		if b == nil {
			return false
		}
		if !yield(le32(b), le32(b[r2rClauseHandler:]), le32(b[r2rClauseFilter:])) {
			break
		}
	}
	return true
}
