package unwind

import "github.com/seamwalk/seam/arch"

// Operations of DWARF expressions (DWARF 5, section 7.7.1).
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opRegx       = 0x90
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

const (
	maxExprStack = 64
	maxExprSteps = 4096 // expressions may loop; real ones have about ten operations
)

// An evaluator computes one DWARF expression. The zero stack is empty.
type evaluator struct {
	t     *cfi
	regs  *arch.Regs
	stack [maxExprStack]uint64
	n     int
	bad   bool
	// What an expression lacked, if it lacked something.
	noReg  arch.Reg
	noWord arch.Addr
	lack   Reason // RegisterUnknown or MemoryMissing; 0 for nothing
}

func (e *evaluator) push(v uint64) {
	if e.n == maxExprStack {
		e.bad = true
		return
	}
	e.stack[e.n] = v
	e.n++
}

func (e *evaluator) pop() uint64 {
	if e.n == 0 {
		e.bad = true
		return 0
	}
	e.n--
	return e.stack[e.n]
}

// pick pushes the i-th entry from the top.
func (e *evaluator) pick(i int) {
	if i >= e.n {
		e.bad = true
		return
	}
	e.push(e.stack[e.n-1-i])
}

func (e *evaluator) reg(n uint64) uint64 {
	if n >= uint64(e.t.nregs) {
		e.bad = true
		return 0
	}
	v, ok := e.regs.Get(arch.Reg(n))
	if !ok && e.lack == 0 {
		e.lack, e.noReg = RegisterUnknown, arch.Reg(n)
	}
	return v
}

// load reads size bytes at a: a full word first, as memory is asked for words,
// and in pieces where the word would reach past the end of what is there.
func (e *evaluator) load(a arch.Addr, size int) uint64 {
	if size == 8 {
		v, ok := e.t.mem.Word(a)
		if !ok && e.lack == 0 {
			e.lack, e.noWord = MemoryMissing, a
		}
		return v
	}
	b := e.t.mem.View(a, size)
	if b == nil {
		if e.lack == 0 {
			e.lack, e.noWord = MemoryMissing, arch.FirstMissing(e.t.mem, a, size)
		}
		return 0
	}
	c := cursor{b: b}
	return c.uint(size)
}

// run evaluates code. The result is the top of the stack; it holds only if ok.
func (e *evaluator) run(code []byte) (v uint64, ok bool) {
	e.n, e.bad, e.lack = 0, false, 0
	return e.evaluate(code)
}

// runOn is run with first on the stack, as the CFA is for the rule of a register.
func (e *evaluator) runOn(first uint64, code []byte) (v uint64, ok bool) {
	e.n, e.bad, e.lack = 0, false, 0
	e.push(first)
	return e.evaluate(code)
}

func (e *evaluator) evaluate(code []byte) (v uint64, ok bool) {
	c := cursor{b: code}
	for steps := 0; c.more(); steps++ {
		if steps == maxExprSteps {
			return 0, false
		}
		e.step(&c)
		if e.bad || c.bad || e.lack != 0 {
			return 0, false
		}
	}
	v = e.pop()
	return v, !e.bad
}

// step runs one operation.
func (e *evaluator) step(c *cursor) {
	switch op := c.u8(); {
	case op >= opLit0 && op < opReg0:
		e.push(uint64(op - opLit0))
	case op >= opReg0 && op < opBreg0:
		// As a location it would name the register. GCC's unwinder takes
		// its value, so that is what such information is made for.
		e.push(e.reg(uint64(op - opReg0)))
	case op >= opBreg0 && op < opRegx:
		e.push(e.reg(uint64(op-opBreg0)) + uint64(c.sleb()))
	case op >= opConst1u && op <= opConsts:
		e.push(constant(op, c))
	case op >= opDup && op <= opRot:
		e.shuffle(op, c)
	case op >= opAbs && op <= opXor:
		e.arith(op, c)
	case op >= opEq && op <= opNe:
		e.compare(op)
	case op == opSkip || op == opBra:
		e.branch(op, c)
	default:
		e.read(op, c)
	}
}

// constant returns the operand of an operation that pushes one.
func constant(op uint8, c *cursor) uint64 {
	switch op {
	case opConst1u:
		return uint64(c.u8())
	case opConst1s:
		return uint64(int8(c.u8()))
	case opConst2u:
		return uint64(c.u16())
	case opConst2s:
		return uint64(int16(c.u16()))
	case opConst4u:
		return uint64(c.u32())
	case opConst4s:
		return uint64(int32(c.u32()))
	case opConstu:
		return c.uleb()
	case opConsts:
		return uint64(c.sleb())
	}
	return c.u64() // opConst8u, opConst8s
}

// branch runs a jump to another operation: opSkip, or opBra if the top of the
// stack is not zero.
func (e *evaluator) branch(op uint8, c *cursor) {
	by := int(int16(c.u16()))
	if op == opBra && e.pop() == 0 {
		return
	}
	if to := c.i + by; to >= 0 && to <= len(c.b) {
		c.i = to
	} else {
		e.bad = true
	}
}

// read runs the operations that take something from memory or from a register
// that their operand names.
func (e *evaluator) read(op uint8, c *cursor) {
	switch op {
	case opAddr:
		e.push(uint64(e.t.ptrs.Absolute(c.uint(e.t.arch.Word))))
	case opDeref:
		e.push(e.load(arch.Addr(e.pop()), e.t.arch.Word))
	case opDerefSize:
		switch size := int(c.u8()); size {
		case 1, 2, 4, 8:
			e.push(e.load(arch.Addr(e.pop()), size))
		default:
			e.bad = true
		}
	case opRegx:
		e.push(e.reg(c.uleb()))
	case opBregx:
		v := e.reg(c.uleb())
		e.push(v + uint64(c.sleb()))
	case opNop:
	default:
		e.bad = true
	}
}

// shuffle runs the operations that only move entries of the stack.
func (e *evaluator) shuffle(op uint8, c *cursor) {
	switch op {
	case opDup:
		e.pick(0)
	case opDrop:
		e.pop()
	case opOver:
		e.pick(1)
	case opPick:
		e.pick(int(c.u8()))
	case opSwap:
		a, b := e.pop(), e.pop()
		e.push(a)
		e.push(b)
	case opRot:
		a, b, d := e.pop(), e.pop(), e.pop()
		e.push(a)
		e.push(d)
		e.push(b)
	}
}

// arith runs the operations that compute a number.
func (e *evaluator) arith(op uint8, c *cursor) {
	b := e.pop()
	switch op { // those of one operand
	case opAbs:
		if int64(b) < 0 {
			b = -b
		}
		e.push(b)
		return
	case opNeg:
		e.push(-b)
		return
	case opNot:
		e.push(^b)
		return
	case opPlusUconst:
		e.push(b + c.uleb())
		return
	}
	a := e.pop()
	switch op {
	case opAnd:
		a &= b
	case opOr:
		a |= b
	case opXor:
		a ^= b
	case opPlus:
		a += b
	case opMinus:
		a -= b
	case opMul:
		a *= b
	case opShl:
		a <<= b // 0 from 64 on, as Go and DWARF have it
	case opShr:
		a >>= b
	case opShra:
		a = uint64(int64(a) >> b)
	case opDiv, opMod:
		switch {
		case b == 0:
			e.bad = true
		case op == opDiv:
			a = uint64(int64(a) / int64(b)) // signed; mod is not
		default:
			a %= b
		}
	}
	e.push(a)
}

// compare runs the operations that compare two signed numbers.
func (e *evaluator) compare(op uint8) {
	b, a := int64(e.pop()), int64(e.pop())
	var is bool
	switch op {
	case opEq:
		is = a == b
	case opGe:
		is = a >= b
	case opGt:
		is = a > b
	case opLe:
		is = a <= b
	case opLt:
		is = a < b
	case opNe:
		is = a != b
	}
	if is {
		e.push(1)
	} else {
		e.push(0)
	}
}
