package arch

import (
	"debug/elf"
	"encoding/binary"
	"sort"
)

// A Memory answers for the bytes of the dumped process that are at hand: a
// hole is reported, never read as zero.
type Memory interface {
	// Word returns the 8 bytes at a as a little-endian number.
	Word(a Addr) (v uint64, ok bool)
	// View returns the n bytes at a, or nil when one of them is missing. They
	// are not to be written to, and stay valid as long as the memory.
	View(a Addr, n int) []byte
}

// FirstMissing returns the address of the first of the n bytes at a that mem
// lacks, for a reason that names it. It is to be asked when View(a, n) was nil,
// and asks for few pieces: what lies before the byte is at hand.
func FirstMissing(mem interface{ View(a Addr, n int) []byte }, a Addr, n int) Addr {
	return a + Addr(sort.Search(n-1, func(i int) bool { return mem.View(a, i+1) == nil }))
}

// An Arch describes one CPU. The rest of the program asks it and never asks
// which CPU it is. What an operating system adds to a CPU is in its [ABI].
type Arch struct {
	Name    string // as GOARCH spells it
	Machine elf.Machine
	PETypes []uint16 // IMAGE_FILE_HEADER.Machine of images for this CPU, .NET's ReadyToRun ones for Linux and macOS among them
	Word    int      // bytes of a pointer

	PC, SP, FP, LR Reg      // LR is NoReg where a call pushes the return address
	Names          []string // by Reg

	Context Layout // registers in a Windows CONTEXT, which CoreCLR uses on every OS
	// ContextPointers is where KNONVOLATILE_CONTEXT_POINTERS, which goes with
	// a CONTEXT, has the addresses of the slots that registers were saved in
	// (winnt.h; src/coreclr/pal/inc/pal.h).
	ContextPointers Layout

	// FramePointer is the rule for a frame that keeps a frame pointer. Where a
	// frame record may lie anywhere in its frame, it has NoSP.
	FramePointer Rule
	// Leave finds, by following the instructions at pc, how code that no
	// table describes goes back to its caller: the tail of a function, a PLT
	// entry, a precode, a write barrier. pc is about to run. It reports false
	// when the instructions do not lead to a return or a jump out of sight
	// within a few steps.
	Leave func(mem Memory, pc Addr, r *Rule) bool
	// Prologue finds the rule for a return address in the body of a function of
	// CoreCLR's JIT whose unwind codes are not at hand, by following the
	// instructions of its prologue. Its catch, finally and filter handlers
	// (funclets) lie behind the body and have prologues of their own, so regs
	// must bear out that pc is in the body; then once says that the rule holds
	// for them alone. ok is false when these are no prologue, or when the frame
	// is not the one that it makes. Nil where no way is known.
	Prologue func(mem Memory, start, pc Addr, regs *Regs, r *Rule) (once, ok bool)
	// LeaveBody finds the rule for a return address in code of CoreCLR's JIT
	// whose unwind codes are not at hand, a body's or a funclet's, by following
	// its instructions from there to where they take the frame down. It reports
	// false when none of the ways it has followed leads there.
	LeaveBody func(mem Memory, pc Addr, r *Rule) bool
	// EnterHook finds the id by which a function of CoreCLR's JIT makes itself known
	// to a profiler's enter hook: a constant in its code, the function's MethodDesc
	// unless the profiler has put another in its place. ok is false for a function
	// that calls no such hook. Nil where no way is known.
	EnterHook func(mem Memory, start Addr) (id uint64, ok bool)
	// AfterCall reports whether the instruction that ends right before a can
	// be a call.
	AfterCall func(mem Memory, a Addr) bool
	// CallTo reports whether the instruction that ends right before ret calls to:
	// directly, through a register or a pointer in memory, or by way of code that
	// jumps on there, when nothing has run since and r are the registers. It reports
	// false where it cannot tell.
	CallTo func(mem Memory, r *Regs, ret, to Addr) bool
	// Straight reports whether the code at from comes to the instruction at to
	// without a jump, conditional ones apart, or a return, and with how many calls.
	Straight func(mem Memory, from, to Addr) (calls int, ok bool)
	// PLT returns the entries of a procedure linkage table of an ELF image, whose
	// bytes are code and lie at at, in order. What is not one is left out.
	PLT func(code []byte, at LinkAddr) []PLTEntry
	// Labels reports whether one of the instructions in the most bytes before pc
	// computes pc, as code does that notes where a call will return to. known is
	// false where their bytes are missing.
	Labels func(mem Memory, pc Addr, most int) (yes, known bool)
	// Strip removes pointer authentication from a code address.
	Strip func(a Addr) Addr
	// PE reads this CPU's PE unwind codes.
	PE PECodes
}

// A Layout is where registers lie in a saved context.
type Layout struct {
	Size   int // bytes that must be there; what follows the last of Fields counts too
	Fields []Field
}

// A Field is where one register lies in a saved context; it has 8 bytes.
type Field struct {
	Reg Reg
	Off int
}

// Load sets every register of l in r to what b holds. It reports false, and
// leaves r alone, when b is shorter than l needs.
func (l *Layout) Load(b []byte, r *Regs) bool {
	if len(b) < l.Size {
		return false
	}
	for _, f := range l.Fields {
		r.Set(f.Reg, binary.LittleEndian.Uint64(b[f.Off:]))
	}
	return true
}

// Store writes the registers of l that r knows to b, and leaves the bytes of
// the others alone. It reports false, and writes nothing, when b is shorter
// than l needs.
func (l *Layout) Store(b []byte, r *Regs) bool {
	if len(b) < l.Size {
		return false
	}
	known, fields := r.known, l.Fields // not read anew after each byte that is written
	for i := range fields {
		if f := &fields[i]; known.Has(f.Reg) {
			binary.LittleEndian.PutUint64(b[f.Off:], r.val[f.Reg])
		}
	}
	return true
}

// all lists the CPUs. A new one is a file of its own and a word here.
var all = []*Arch{AMD64, ARM64}

// All returns every known CPU.
func All() []*Arch { return all }

// ByMachine returns the CPU of an ELF file, or nil.
func ByMachine(m elf.Machine) *Arch {
	for _, a := range all {
		if a.Machine == m {
			return a
		}
	}
	return nil
}

// RegName returns the CPU's name of r, as gdb prints it.
func (a *Arch) RegName(r Reg) string {
	if int(r) < len(a.Names) {
		return a.Names[r]
	}
	return "?"
}
