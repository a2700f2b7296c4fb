package arch

import (
	"encoding/binary"
	"math"
)

// Operations of UNWIND_INFO as in "x64 exception handling" of Microsoft's
// documentation, version 1 and 2, and what CoreCLR added for its own code on
// Unix (src/coreclr/inc/win64unwind.h of .NET 8 to 10).
const (
	amd64PushNonvol = iota
	amd64AllocLarge
	amd64AllocSmall
	amd64SetFPReg
	amd64SaveNonvol
	amd64SaveNonvolFar
	amd64Epilog // version 2; in version 1 an XMM save that no compiler emits any more
	amd64Spare
	amd64SaveXMM128
	amd64SaveXMM128Far
	amd64PushMachFrame
	amd64SetFPRegLarge // CoreCLR on Unix only: the frame register is more than 240 bytes above RSP
)

const (
	amd64ChainInfo = 4             // UNW_FLAG_CHAININFO
	amd64MaxChain  = 32            // as in the runtime's unwinder
	amd64AllRun    = math.MaxInt64 // for a pc behind the prologue: all of it has run
)

// amd64PERegs maps the CPU's own register numbers to DWARF's.
var amd64PERegs = [16]Reg{amd64RAX, amd64RCX, amd64RDX, amd64RBX, amd64RSP, amd64RBP, amd64RSI, amd64RDI,
	amd64R8, amd64R9, amd64R10, amd64R11, amd64R12, amd64R13, amd64R14, amd64R15}

func amd64PEFunction(b []byte) PEFunction {
	if len(b) < 12 {
		return PEFunction{}
	}
	return PEFunction{
		Begin:  binary.LittleEndian.Uint32(b),
		End:    binary.LittleEndian.Uint32(b[4:]),
		Unwind: binary.LittleEndian.Uint32(b[8:]),
	}
}

// An amd64Info is one UNWIND_INFO.
type amd64Info struct {
	at       Addr
	version  byte
	chained  bool
	prologue int64  // bytes
	codes    []byte // 2 bytes a slot
	fp       Reg    // frame register, or NoReg
	fpOff    int64  // it is this much above the establisher frame
	next     PEFunction
}

// amd64ReadInfo reads the unwind information of *fn, and sets *fn to the entry
// that really has it (RUNTIME_FUNCTION_INDIRECT: bit 0 says that another entry
// of the table is meant).
func amd64ReadInfo(q *PEQuery, fn *PEFunction, i *amd64Info) PEResult {
	if fn.Unwind&1 != 0 {
		at := q.Base + Addr(fn.Unwind&^1)
		b := q.Mem.View(at, 12)
		if b == nil {
			return PEResult{PEMissing, at}
		}
		if *fn = amd64PEFunction(b); fn.Unwind&1 != 0 {
			return PEResult{PEBad, at}
		}
	}
	i.at = q.Base + Addr(fn.Unwind)
	head := q.Mem.View(i.at, 4)
	if head == nil {
		return PEResult{PEMissing, i.at}
	}
	i.version = head[0] & 7
	if i.version != 1 && i.version != 2 {
		return PEResult{PEBad, i.at}
	}
	i.chained = head[0]>>3&amd64ChainInfo != 0
	i.prologue = int64(head[1])
	n := 2 * int(head[2])
	size := n
	if i.chained {
		size = (n+3)&^3 + 12
	}
	var b []byte
	if size > 0 {
		if b = q.Mem.View(i.at+4, size); b == nil {
			return PEResult{PEMissing, i.at + 4}
		}
	}
	i.codes, i.fp, i.fpOff = b[:n], NoReg, int64(head[3]>>4)*16
	if i.chained {
		i.next = amd64PEFunction(b[size-12:])
	}
	if head[3]&15 != 0 {
		i.fp = amd64PERegs[head[3]&15]
		if head[3]>>4 == 15 {
			i.fpOff = i.largeFrame()
		}
	}
	return PEResult{}
}

// amd64PEChained reports whether unwind information has UNW_FLAG_CHAININFO.
func amd64PEChained(mem Memory, a Addr) (chained, ok bool) {
	b := mem.View(a, 1)
	if b == nil {
		return false, false
	}
	return b[0]>>3&amd64ChainInfo != 0, true
}

// largeFrame returns the offset of a SET_FPREG_LARGE, which a frame offset of
// 15 stands for on Unix; without one it is the 15 * 16 that it is on Windows.
func (i *amd64Info) largeFrame() int64 {
	for c := i.codes; len(c) >= 2; {
		if c[1]&15 == amd64SetFPRegLarge && len(c) >= 6 {
			return int64(binary.LittleEndian.Uint32(c[2:])) * 16
		}
		n := i.slots(c)
		if n == 0 || 2*n > len(c) {
			break
		}
		c = c[2*n:]
	}
	return 15 * 16
}

// slots returns how many 2-byte slots the code at the begin of c takes, or 0
// for an unknown one.
func (i *amd64Info) slots(c []byte) int {
	switch c[1] & 15 {
	case amd64PushNonvol, amd64AllocSmall, amd64SetFPReg, amd64PushMachFrame:
		return 1
	case amd64SaveNonvol, amd64SaveXMM128:
		return 2
	case amd64SaveNonvolFar, amd64SaveXMM128Far, amd64Spare, amd64SetFPRegLarge:
		return 3
	case amd64AllocLarge:
		if c[1]>>4 == 0 {
			return 2
		}
		return 3
	case amd64Epilog:
		if i.version == 1 {
			return 2
		}
		return 1
	}
	return 0
}

// An amd64Frame is the state while a prologue is undone. Offsets count from
// the value that base has at the pc.
type amd64Frame struct {
	base  Reg    // RSP, until a SET_FPREG is undone, which makes it the frame register
	sp    int64  // where RSP was at this point of the prologue
	saved RegSet // registers whose slots are known
	fixed RegSet // those of them that count from the establisher frame
	slot  [16]int64
	est   Reg // the establisher frame is est - estOff; RSP or the frame register
	estBy int64
	mach  bool // a machine frame lies at sp: RIP, CS, RFLAGS, RSP, SS

	// What an epilogue does at its end, in its order: free bytes, then pop.
	// amd64AnyFree stands where RSP comes from the frame register.
	free int64
	pops [16]Reg
	n    int
}

const amd64AnyFree = -1

// establish finds what SAVE_NONVOL counts from. In a prologue the frame
// register counts only when it has been set, and then it does so at once.
func (f *amd64Frame) establish(i *amd64Info, run int64) {
	f.est, f.estBy = amd64RSP, 0
	if i.fp == NoReg {
		return
	}
	set := run >= i.prologue || i.chained
	for c := i.codes; !set && len(c) >= 2; {
		op := c[1] & 15
		set = (op == amd64SetFPReg || op == amd64SetFPRegLarge) && int64(c[0]) <= run
		n := i.slots(c)
		if n == 0 || 2*n > len(c) {
			break
		}
		c = c[2*n:]
	}
	if set {
		f.est, f.estBy = i.fp, i.fpOff
	}
}

// undo undoes the codes of i whose instructions have run, run bytes into the
// function. It returns the index of a code that is wrong, or -1.
func (f *amd64Frame) undo(i *amd64Info, run int64) int {
	for k := 0; k < len(i.codes); {
		c := i.codes[k:]
		n := i.slots(c)
		if n == 0 || 2*n > len(c) || f.mach {
			return k
		}
		if op := c[1] & 15; op != amd64Epilog && int64(c[0]) <= run && !f.undoCode(i, c) {
			return k
		}
		k += 2 * n
	}
	return -1
}

func (f *amd64Frame) undoCode(i *amd64Info, c []byte) bool {
	reg := amd64PERegs[c[1]>>4]
	switch c[1] & 15 {
	case amd64PushNonvol:
		if reg == amd64RSP {
			return false
		}
		f.saved |= 1 << reg
		f.fixed &^= 1 << reg
		f.slot[reg] = f.sp
		f.sp += 8
		if f.n < len(f.pops) {
			f.pops[f.n] = reg
			f.n++
		}
	case amd64AllocSmall:
		f.alloc(int64(c[1]>>4)*8 + 8)
	case amd64AllocLarge:
		if c[1]>>4 == 0 {
			f.alloc(int64(binary.LittleEndian.Uint16(c[2:])) * 8)
		} else {
			f.alloc(int64(binary.LittleEndian.Uint32(c[2:])))
		}
	case amd64SetFPReg, amd64SetFPRegLarge:
		return f.rebase(i)
	case amd64SaveNonvol, amd64SaveNonvolFar:
		if reg == amd64RSP {
			return false
		}
		f.saved |= 1 << reg
		f.fixed |= 1 << reg
		if c[1]&15 == amd64SaveNonvol {
			f.slot[reg] = int64(binary.LittleEndian.Uint16(c[2:])) * 8
		} else {
			f.slot[reg] = int64(binary.LittleEndian.Uint32(c[2:]))
		}
	case amd64PushMachFrame:
		if c[1]>>4 > 1 {
			return false
		}
		f.sp += int64(c[1]>>4) * 8 // an error code lies below
		f.mach = true
	}
	return true
}

func (f *amd64Frame) alloc(n int64) {
	f.sp += n
	if f.n > 0 || f.free == amd64AnyFree {
		f.free = 0
	}
	f.free += n
	f.n = 0
}

// rebase undoes a SET_FPREG: RSP was the frame register less an offset. What
// was pushed below that point is at a fixed distance from it even where the
// body moves RSP (alloca), so everything is counted from there on.
func (f *amd64Frame) rebase(i *amd64Info) bool {
	if i.fp == NoReg || f.saved.Has(i.fp) || f.base != amd64RSP {
		return false
	}
	move := -i.fpOff - f.sp
	for r := range f.slot {
		if !f.fixed.Has(Reg(r)) {
			f.slot[r] += move
		}
	}
	if f.est == amd64RSP {
		f.est, f.estBy = i.fp, -move
	}
	f.base, f.sp = i.fp, -i.fpOff
	f.free, f.n = amd64AnyFree, 0
	return true
}

// rule writes the rule that f amounts to. It reports false when f does not fit one.
func (f *amd64Frame) rule(r *Rule) bool {
	cfa := f.sp + 8
	if cfa != int64(int32(cfa)) {
		return false
	}
	*r = Rule{Base: f.base, RA: NoReg, Offset: int32(cfa), Signal: f.mach}
	r.Save(amd64RIP, -8)
	if f.mach {
		r.Save(amd64RSP, 16)
	}
	// Registers that the ABI does not keep are of use only to a caller that
	// was interrupted; such prologues push all 16, so they come last.
	if !f.put(r, f.saved&amd64Keep, cfa) {
		return false
	}
	return !f.mach || f.put(r, f.saved&^amd64Keep, cfa)
}

// amd64Keep is what the Windows ABI keeps: all that the System V ABI does, and more.
const amd64Keep = RegSet(1<<amd64RBX | 1<<amd64RBP | 1<<amd64RSI | 1<<amd64RDI |
	1<<amd64R12 | 1<<amd64R13 | 1<<amd64R14 | 1<<amd64R15)

func (f *amd64Frame) put(r *Rule, set RegSet, cfa int64) bool {
	for reg := amd64RAX; reg < amd64RIP; reg++ {
		if !set.Has(reg) {
			continue
		}
		off := f.slot[reg]
		if f.fixed.Has(reg) {
			if f.est != f.base {
				return false
			}
			off -= f.estBy
		}
		if off -= cfa; off != int64(int32(off)) {
			return false
		}
		if !r.Save(reg, int32(off)) {
			break
		}
	}
	return true
}

// amd64PERule undoes the prologue of q.Func as far as it has run at q.PC.
//
// A pc that is about to run may be in an epilogue, of which version 1 says
// nothing: its instructions are followed (amd64Epilogue). Where they are not
// at hand the result is PENoCode.
func amd64PERule(q *PEQuery, r *Rule) PEResult {
	f := amd64Frame{base: amd64RSP}
	fn := q.Func
	var code PEFunction  // what covers the pc
	var own, i amd64Info // own: that of code
	run := int64(amd64AllRun)
	for depth := 0; ; depth++ {
		if res := amd64ReadInfo(q, &fn, &i); res.Status != PEOK {
			return res
		}
		if depth == 0 {
			code, own = fn, i
			// A return address can lie in a prologue too: large frames call
			// __chkstk before they subtract.
			off := int64(q.PC.Addr - (q.Base + Addr(fn.Begin)))
			if 0 <= off && off < i.prologue {
				run = off
			}
			f.establish(&i, run)
		}
		if k := f.undo(&i, run); k >= 0 {
			return PEResult{PEBad, i.at + 4 + Addr(k)}
		}
		if !i.chained || f.mach {
			break
		}
		if depth == amd64MaxChain {
			return PEResult{PEBad, i.at}
		}
		// The prologue of a parent lies elsewhere and has run.
		fn, run = i.next, amd64AllRun
	}
	if !f.rule(r) {
		return PEResult{PEBad, own.at}
	}
	// MSVC calls all that precedes the last save a prologue, even an early
	// return, so an epilogue may be in one.
	if q.PC.Exact && (f.base != amd64RSP || f.sp != 0) && !f.mach {
		return amd64Epilogue(q, &code, &own, &f, r)
	}
	return PEResult{}
}
