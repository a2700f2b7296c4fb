package unwind

import "github.com/seamwalk/seam/arch"

// Call frame instructions (DWARF 5, section 7.24), and those of GNU and Arm.
const (
	cfaNop               = 0x00
	cfaSetLoc            = 0x01
	cfaAdvance1          = 0x02
	cfaAdvance2          = 0x03
	cfaAdvance4          = 0x04
	cfaOffsetExt         = 0x05
	cfaRestoreExt        = 0x06
	cfaUndefined         = 0x07
	cfaSameValue         = 0x08
	cfaRegister          = 0x09
	cfaRemember          = 0x0a
	cfaRestoreState      = 0x0b
	cfaDefCFA            = 0x0c
	cfaDefCFARegister    = 0x0d
	cfaDefCFAOffset      = 0x0e
	cfaDefCFAExpression  = 0x0f
	cfaExpression        = 0x10
	cfaOffsetExtSF       = 0x11
	cfaDefCFASF          = 0x12
	cfaDefCFAOffsetSF    = 0x13
	cfaValOffset         = 0x14
	cfaValOffsetSF       = 0x15
	cfaValExpression     = 0x16
	cfaAdvance8          = 0x1d // MIPS
	cfaSetRAState        = 0x2b // AArch64
	cfaNegateRAStateAtPC = 0x2c // AArch64
	cfaNegateRAState     = 0x2d // AArch64; SPARC's GNU_window_save
	cfaArgsSize          = 0x2e // GNU
	cfaNegOffsetExt      = 0x2f // GNU
	cfaAdvance           = 0x40 // the low 6 bits are the operand
	cfaOffset            = 0x80
	cfaRestore           = 0xc0
)

// how says where a register of the caller is. Nothing said is not the same
// as undefined: callee-saved registers are then unchanged.
type how uint8

const (
	unspecified   how = iota
	undefined         // lost
	sameValue         // in itself
	atOffset          // stored at CFA + off
	valOffset         // is CFA + off
	inRegister        // in register off
	atExpression      // stored where the expression says
	valExpression     // what the expression says
)

// part says whose bytes an expression is in.
type part uint8

const (
	partFDE part = iota
	partCIE
)

// A cell is the rule of one register. An expression is off>>32 bytes of its
// part's program, from byte off&(1<<32-1) on.
type cell struct {
	off  int64
	how  how
	part part
}

func exprCell(h how, p part, start, n int) cell {
	return cell{off: int64(n)<<32 | int64(start), how: h, part: p}
}

// A row is the unwind information at one pc. The cells of registers that no
// walk carries (vector registers) are dropped as they are read.
type row struct {
	cfa    cell // atOffset: base + off; atExpression
	base   uint64
	regs   [arch.MaxRegs]cell
	signed bool // the return address carries a pointer authentication code
}

// maxRemember bounds DW_CFA_remember_state without its restore. Compilers
// nest one or two deep.
const maxRemember = 16

// scratch is what the machine writes to. It belongs to a walker's Step.
type scratch struct {
	row   row
	stack [maxRemember]row
	eval  evaluator
}

// A machine runs call frame instructions up to a pc.
type machine struct {
	*cfi
	cie    *cie
	row    *row
	part   part
	target arch.Addr // the row for this pc is wanted
	stack  *[maxRemember]row
	code   arch.Span // for pointers relative to the function

	loc   arch.Addr // the first pc of the row
	depth int       // rows on the stack
}

// run changes m.row by the instructions in program until they go past the
// target. at is where program lies, loc the pc of its first row.
func (m *machine) run(program []byte, at, loc arch.Addr) fault {
	c := cursor{b: program, at: at}
	m.loc, m.depth = loc, 0
	for c.more() {
		start := c.here()
		if f := m.instruction(&c); f.reason != 0 {
			return f
		}
		if c.bad {
			return broken(start)
		}
		// A row holds from its first pc on, so that one which begins right
		// after the target does not count.
		if m.loc > m.target {
			return fault{}
		}
	}
	return fault{}
}

// instruction runs the one at c. One that is cut short leaves c bad.
func (m *machine) instruction(c *cursor) fault {
	start := c.here()
	op := c.u8()
	switch op & 0xc0 { // those with an operand in the low bits
	case cfaAdvance:
		m.advance(uint64(op & 0x3f))
		return fault{}
	case cfaOffset:
		m.set(uint64(op&0x3f), cell{off: int64(c.uleb()) * m.cie.dataAlign, how: atOffset})
		return fault{}
	case cfaRestore:
		m.restore(uint64(op & 0x3f))
		return fault{}
	}
	switch op {
	case cfaNop:
	case cfaAdvance1:
		m.advance(uint64(c.u8()))
	case cfaAdvance2:
		m.advance(uint64(c.u16()))
	case cfaAdvance4:
		m.advance(uint64(c.u32()))
	case cfaAdvance8:
		m.advance(c.u64())
	case cfaSetLoc:
		bases := m.base
		bases.Func = m.code.Lo
		to, missing := m.pointer(c, m.cie.enc, &bases)
		if missing != 0 {
			return fault{InfoMissing, missing}
		}
		if c.bad || to < m.loc {
			return broken(start)
		}
		m.loc = to
	case cfaRemember:
		if m.stack == nil || m.depth == maxRemember {
			return broken(start)
		}
		m.stack[m.depth] = *m.row
		m.depth++
	case cfaRestoreState:
		if m.depth == 0 {
			return broken(start)
		}
		// With the CFA, as GCC and all debuggers have it; the standard
		// speaks of register rules only.
		m.depth--
		*m.row = m.stack[m.depth]
	case cfaNegateRAState, cfaNegateRAStateAtPC:
		m.row.signed = !m.row.signed
	case cfaSetRAState:
		// The state, then the offset of the signing instruction (DWARF
		// for the Arm 64-bit Architecture, 2025Q1).
		m.row.signed = c.uleb() != 0
		c.sleb()
	case cfaArgsSize:
		c.uleb() // counts for landing pads only
	default:
		if !m.define(op, c) {
			return broken(start)
		}
	}
	return fault{}
}

// advance moves to the row of a later pc, by so many units of code. One that does
// not move, or goes round, leaves the row where it is.
func (m *machine) advance(by uint64) { m.loc += arch.Addr(by * m.cie.codeAlign) }

// define runs the instructions that define the CFA or a register.
func (m *machine) define(op uint8, c *cursor) bool {
	w, da := m.row, m.cie.dataAlign
	switch op {
	case cfaDefCFA:
		w.base = c.uleb()
		w.cfa = cell{off: int64(c.uleb()), how: atOffset}
	case cfaDefCFASF:
		w.base = c.uleb()
		w.cfa = cell{off: c.sleb() * da, how: atOffset}
	case cfaDefCFARegister:
		w.base = c.uleb()
		if w.cfa.how != atOffset {
			return false
		}
	case cfaDefCFAOffset:
		w.cfa = cell{off: int64(c.uleb()), how: w.cfa.how}
		return w.cfa.how == atOffset
	case cfaDefCFAOffsetSF:
		w.cfa = cell{off: c.sleb() * da, how: w.cfa.how}
		return w.cfa.how == atOffset
	case cfaDefCFAExpression:
		w.cfa = m.expression(atExpression, c)
	case cfaOffsetExt:
		m.set(c.uleb(), cell{off: int64(c.uleb()) * da, how: atOffset})
	case cfaOffsetExtSF:
		m.set(c.uleb(), cell{off: c.sleb() * da, how: atOffset})
	case cfaNegOffsetExt:
		m.set(c.uleb(), cell{off: -int64(c.uleb()) * da, how: atOffset})
	case cfaValOffset:
		m.set(c.uleb(), cell{off: int64(c.uleb()) * da, how: valOffset})
	case cfaValOffsetSF:
		m.set(c.uleb(), cell{off: c.sleb() * da, how: valOffset})
	case cfaRegister:
		m.set(c.uleb(), cell{off: int64(c.uleb()), how: inRegister})
	case cfaUndefined:
		m.set(c.uleb(), cell{how: undefined})
	case cfaSameValue:
		m.set(c.uleb(), cell{how: sameValue})
	case cfaRestoreExt:
		m.restore(c.uleb())
	case cfaExpression:
		r := c.uleb()
		m.set(r, m.expression(atExpression, c))
	case cfaValExpression:
		r := c.uleb()
		m.set(r, m.expression(valExpression, c))
	default:
		return false
	}
	return true
}

func (m *machine) set(r uint64, x cell) {
	if r < uint64(m.nregs) {
		m.row.regs[r] = x
	}
}

// restore gives r the rule it has after the CIE's own instructions. There,
// it means nothing.
func (m *machine) restore(r uint64) {
	if m.part == partFDE && r < uint64(m.nregs) {
		m.row.regs[r] = m.cie.init.regs[r]
	}
}

func (m *machine) expression(h how, c *cursor) cell {
	n := c.uleb()
	start := c.i
	if c.bytes(n); c.bad {
		return cell{}
	}
	return exprCell(h, m.part, start, int(n))
}

// rowAt leaves in sc.row the row of d that holds for target.
func (t *cfi) rowAt(d *fde, target arch.Addr, sc *scratch) fault {
	sc.row = d.cie.init
	m := machine{cfi: t, cie: d.cie, row: &sc.row, part: partFDE, target: target, stack: &sc.stack, code: d.code}
	return m.run(d.program, d.programAt, d.code.Lo)
}
