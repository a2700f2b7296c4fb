package arch

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

const (
	amd64Steps = 64    // bounds how many instructions Leave follows, over all branches
	amd64Near  = 16384 // bytes; libc has functions of 10,000
)

// An amd64Path is the state of the CPU along one way through the code.
type amd64Path struct {
	reg [16]codeValue
	stores
	sums   RegSet // registers that hold an address computed with an index: a switch jumps to such
	pushed int64  // bytes that a caller in the same piece of code (a PLT entry) has pushed before
}

// amd64Leave follows the instructions at pc until they return, or jump to another
// function, and says where the return address lies then. At a branch it tries both
// ways and takes the first that gets there: in the code that it is for both do. A
// write barrier, for example, has one way that marks and one that has nothing to mark,
// and both end in ret.
func amd64Leave(mem Memory, pc Addr, r *Rule) bool {
	p := amd64Start()
	p.pushed = amd64PLTPushed(mem, pc)
	steps := amd64Steps
	return p.follow(mem, pc, &steps, r)
}

// amd64Start returns the state in which every register has what it had at the start.
func amd64Start() (p amd64Path) {
	for i := range p.reg {
		p.reg[i] = codeValue{valueSum, Reg(i), 0}
	}
	return p
}

// amd64PLTPushed returns how many bytes of arguments for the dynamic linker
// lie above the stack pointer when pc is in the lazy-binding half of a PLT
// (System V ABI, AMD64 supplement, figure 5.2): an entry pushes its number and
// jumps to the first entry, the first entry pushes a word and jumps to the linker.
// linkers differ in whether they describe these bytes; lld does not.
func amd64PLTPushed(mem Memory, pc Addr) int64 {
	before := func(n int, op string) bool {
		b := mem.View(pc-Addr(n), n)
		return b != nil && string(b[:len(op)]) == op
	}
	first := func(a Addr) bool { // push [rip+x]; jmp [rip+y]
		b := mem.View(a, 9)
		return b != nil && b[0] == 0xff && b[1] == 0x35 &&
			(b[6] == 0xff && b[7] == 0x25 || b[6] == 0xf2 && b[7] == 0xff && b[8] == 0x25)
	}
	if first(pc) {
		return 8
	}
	b := viewUpTo(mem, pc, 6)
	if len(b) > 0 && b[0] == 0xf2 { // bnd
		b = b[1:]
		pc++
	}
	switch {
	case len(b) >= 5 && b[0] == 0xe9 && (before(5, "\x68") || before(6, "\x68")):
		if first(pc + 5 + Addr(int64(int32(binary.LittleEndian.Uint32(b[1:]))))) {
			return 8
		}
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0x25 && (before(6, "\xff\x35") || before(7, "\xff\x35")):
		return 16
	}
	return 0
}

// amd64Decode decodes the instruction at the begin of b. x86asm gives wrong
// lengths to a few that occur in every prologue and epilogue; for those, and
// for what it does not know, the operation is 0.
func amd64Decode(b []byte) (in x86asm.Inst, ok bool) {
	if len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3]&0xfe == 0xfa {
		return x86asm.Inst{Len: 4}, true // endbr64, endbr32 (golang/go#35865)
	}
	if len(b) >= 3 && b[0] == 0xc5 && b[1]&0xfb == 0xf8 && b[2] == 0x77 {
		return x86asm.Inst{Len: 3}, true // vzeroupper, vzeroall: x86asm takes a ModRM byte too many
	}
	if len(b) == 0 || b[0] == 0xd5 { // REX2 (APX)
		return in, false
	}
	in, err := x86asm.Decode(b, 64)
	return in, err == nil && in.Op != 0 && in.Len > 0
}

// follow runs the instructions at pc. It writes r when it finds the way out.
func (p *amd64Path) follow(mem Memory, pc Addr, steps *int, r *Rule) bool {
	for ; *steps > 0; *steps-- {
		b := viewUpTo(mem, pc, 15)
		in, ok := amd64Decode(b)
		if !ok {
			return false
		}
		next := pc + Addr(in.Len)
		switch in.Op {
		case x86asm.RET:
			return p.leave(returns, r)
		case x86asm.JMP:
			rel, direct := in.Args[0].(x86asm.Rel)
			if !direct {
				return !p.isSwitch(mem, pc, &in) && p.leave(jumpsOut, r)
			}
			*steps--
			to := next + Addr(int64(rel))
			if there := *p; there.follow(mem, to, steps, r) {
				return true
			}
			// What lies near is the same function, and it led nowhere. What
			// is far is another, and it has begun nothing yet.
			return to-pc+amd64Near > 2*amd64Near && p.leave(jumpsOut, r)
		case x86asm.CALL, x86asm.UD2, x86asm.HLT, x86asm.INT, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ,
			x86asm.SYSRET, x86asm.SYSEXIT, x86asm.ENTER, x86asm.LJMP, x86asm.LCALL:
			return false
		case x86asm.SYSCALL:
			if before := mem.View(pc-7, 7); string(before) == "\x48\xc7\xc0\x0f\x00\x00\x00" {
				return false // rt_sigreturn does not come back
			}
			p.clobber(amd64RCX, amd64R11, amd64RAX)
		default:
			if rel, ok := in.Args[0].(x86asm.Rel); ok { // a conditional jump
				*steps--
				if on := *p; on.follow(mem, next, steps, r) {
					return true
				}
				next += Addr(int64(rel))
				break
			}
			p.run(&in)
		}
		pc = next
	}
	return false
}

// isSwitch reports whether the jump in goes to another part of the same function,
// as a switch does, and not out of it. A switch picks the address from a table:
// `jmp [table+8*i]`, or it loads the address with an index, or adds an entry of the
// table to the table's address.
func (p *amd64Path) isSwitch(mem Memory, pc Addr, in *x86asm.Inst) bool {
	if m, ok := in.Args[0].(x86asm.Mem); ok {
		return m.Index != 0
	}
	reg, _, ok := amd64Operand(in.Args[0])
	if !ok || p.sums.Has(reg) || p.reg[amd64RSP].off < 0 {
		return true
	}
	if b := mem.View(pc-3, 3); b != nil { // add reg, reg, when the pc is right behind it
		before, err := x86asm.Decode(b, 64)
		dst, _, _ := amd64Operand(before.Args[0])
		return err == nil && before.Len == 3 && before.Op == x86asm.ADD && dst == reg
	}
	return false
}

// leave writes the rule for a path that ends in a return, or in a jump to code
// that returns for it.
func (p *amd64Path) leave(by wayOut, r *Rule) bool {
	sp := p.reg[amd64RSP]
	if sp.kind != valueSum || sp.reg != amd64RSP && sp.reg != amd64RBP {
		return false // longjmp, for one, has RSP from somewhere else
	}
	off := sp.off
	if by == jumpsOut && sp.reg == amd64RSP && off < p.pushed {
		// What was pushed and not popped are arguments of the code jumped to.
		off = p.pushed
	}
	if p.find(codeValue{valueSum, sp.reg, off}) >= 0 {
		return false // not a return: it jumps to what this code has pushed
	}
	cfa := off + 8
	if cfa != int64(int32(cfa)) {
		return false
	}
	for _, s := range p.stored[:p.n] {
		if s.at.reg != sp.reg {
			return false // whether this was loaded back since cannot be told
		}
	}
	out := Rule{Base: sp.reg, RA: NoReg, Offset: int32(cfa)}
	out.Save(amd64RIP, -8)
	for reg := amd64RAX; reg < amd64RIP; reg++ {
		if !amd64Keep.Has(reg) {
			continue
		}
		v := p.reg[reg]
		off := v.off - cfa
		switch {
		case v == codeValue{valueSum, reg, 0}:
		case v.kind == valueLoad && v.reg == sp.reg && off == int64(int32(off)):
			out.Save(reg, int32(off))
		case reg == amd64RSI || reg == amd64RDI:
			// Scratch registers but on Windows: there they would be restored,
			// elsewhere nobody asks for them.
		default:
			return false // this code is no function: it does not keep what a caller counts on
		}
	}
	*r = out
	return true
}

// store notes that the 8 bytes at at were written.
func (p *amd64Path) store(at, v codeValue) {
	p.put(at, v, p.reg[amd64RSP].reg, amd64RBP)
}

func (p *amd64Path) clobber(rs ...Reg) {
	for _, r := range rs {
		p.reg[r] = codeValue{}
	}
}

// amd64Operand returns the DWARF number of a general register operand, and
// its size in bytes.
func amd64Operand(a x86asm.Arg) (r Reg, size int, ok bool) {
	x, ok := a.(x86asm.Reg)
	switch {
	case !ok:
	case x >= x86asm.RAX && x <= x86asm.R15:
		return amd64PERegs[x-x86asm.RAX], 8, true
	case x >= x86asm.EAX && x <= x86asm.R15L:
		return amd64PERegs[x-x86asm.EAX], 4, true
	case x >= x86asm.AX && x <= x86asm.R15W:
		return amd64PERegs[x-x86asm.AX], 2, true
	case x >= x86asm.AL && x <= x86asm.BL:
		return amd64PERegs[x-x86asm.AL], 1, true
	case x >= x86asm.AH && x <= x86asm.BH:
		return amd64PERegs[x-x86asm.AH], 1, true
	case x >= x86asm.SPB && x <= x86asm.R15B:
		return amd64PERegs[4+x-x86asm.SPB], 1, true
	}
	return NoReg, 0, false
}

// address returns the address that a memory operand stands for.
func (p *amd64Path) address(m x86asm.Mem) codeValue {
	r, size, ok := amd64Operand(m.Base)
	if !ok || size != 8 || m.Index != 0 || m.Segment != 0 || p.reg[r].kind != valueSum {
		return codeValue{}
	}
	v := p.reg[r]
	v.off += int64(int32(m.Disp)) // x86asm does not extend the sign of 4 bytes
	return v
}

func (p *amd64Path) move(by int64) {
	if sp := &p.reg[amd64RSP]; sp.kind == valueSum {
		sp.off += by
	}
}

// An amd64Arg is an operand as amd64Path needs it: a general register and its
// size in bytes, or memory.
type amd64Arg struct {
	reg          Reg
	size         int
	isReg, isMem bool
	mem          x86asm.Mem
}

func (a *amd64Arg) read(x x86asm.Arg) {
	a.reg, a.size, a.isReg = amd64Operand(x)
	a.mem, a.isMem = x.(x86asm.Mem)
}

// run changes the state as an instruction does that is no jump.
func (p *amd64Path) run(in *x86asm.Inst) {
	var dst, src amd64Arg
	dst.read(in.Args[0])
	src.read(in.Args[1])
	imm, isImm := in.Args[1].(x86asm.Imm)
	sp := &p.reg[amd64RSP]
	if dst.isReg {
		p.sums &^= 1 << dst.reg
		if in.Op == x86asm.ADD && !isImm || src.isMem && src.mem.Index != 0 && in.Op != x86asm.LEA {
			p.sums |= 1 << dst.reg
		}
	}
	switch in.Op {
	case 0, x86asm.NOP, x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.PREFETCHT0, x86asm.PREFETCHT1,
		x86asm.PREFETCHT2, x86asm.PREFETCHNTA, x86asm.PREFETCHW:
	case x86asm.PUSH, x86asm.PUSHFQ:
		v := codeValue{}
		if dst.isReg {
			v = p.reg[dst.reg]
		}
		p.move(-8)
		p.store(*sp, v)
	case x86asm.POP, x86asm.POPFQ:
		v := p.load(*sp)
		p.move(8)
		p.result(&dst, v)
	case x86asm.LEAVE:
		*sp = p.reg[amd64RBP]
		p.reg[amd64RBP] = p.load(*sp)
		p.move(8)
	case x86asm.MOV:
		p.mov(&dst, &src)
	case x86asm.LEA:
		v := codeValue{}
		if dst.size == 8 && src.isMem {
			v = p.address(src.mem)
		}
		p.result(&dst, v)
	case x86asm.ADD, x86asm.SUB:
		v := codeValue{}
		if dst.isReg && dst.size == 8 && isImm {
			if in.Op == x86asm.SUB {
				imm = -imm
			}
			v = p.reg[dst.reg].moved(int64(imm))
		}
		p.result(&dst, v)
	case x86asm.XCHG, x86asm.XADD:
		p.result(&dst, codeValue{})
		p.result(&src, codeValue{})
	default:
		p.other(in, &dst, &src)
	}
}

// result makes v the value of dst where that is a register.
func (p *amd64Path) result(dst *amd64Arg, v codeValue) {
	if dst.isReg {
		p.reg[dst.reg] = v
	}
}

// mov runs a mov, of 8 bytes or less.
func (p *amd64Path) mov(dst, src *amd64Arg) {
	v := codeValue{}
	switch {
	case dst.isMem:
		if src.isReg && src.size == 8 {
			v = p.reg[src.reg]
		}
		p.store(p.address(dst.mem), v)
		return
	case dst.size != 8:
	case src.isReg && src.size == 8:
		v = p.reg[src.reg]
	case src.isMem:
		v = p.load(p.address(src.mem))
	}
	p.result(dst, v)
}

// other runs an instruction of which nothing is known but its operands. What one
// writes without naming it is never a register that a callee keeps, but for cpuid.
func (p *amd64Path) other(in *x86asm.Inst, dst, src *amd64Arg) {
	p.clobber(amd64RAX, amd64RCX, amd64RDX)
	if dst.isMem && src.isMem || in.Op == x86asm.STOSQ { // movs, cmps; stos
		p.clobber(amd64RSI, amd64RDI)
	}
	if in.Op == x86asm.CPUID {
		p.clobber(amd64RBX)
	}
	p.result(dst, codeValue{})
}
