package arch

import (
	"debug/elf"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// DWARF numbers of AArch64 registers (DWARF for the Arm 64-bit Architecture,
// section 4.1): x0 to x30, sp is 31, pc 32.
const (
	arm64X19 Reg = regnum.ARM64_X0 + 19
	arm64X28 Reg = regnum.ARM64_X0 + 28
	arm64FP  Reg = regnum.ARM64_BP
	arm64LR  Reg = regnum.ARM64_LR
	arm64SP  Reg = regnum.ARM64_SP
	arm64PC  Reg = regnum.ARM64_PC
)

// ARM64 is AArch64.
var ARM64 = &Arch{
	Name: "arm64", Machine: elf.EM_AARCH64, Word: 8,
	PETypes: []uint16{0xaa64, 0xaa64 ^ 0x7B79, 0xaa64 ^ 0x4644, 0xaa64 ^ 0xADC4, 0xaa64 ^ 0x1993},
	PC:      arm64PC, SP: arm64SP, FP: arm64FP, LR: arm64LR,
	Names: arm64Names(),

	// CONTEXT of winnt.h: ContextFlags, Cpsr, x0 to x28, fp, lr, sp, pc.
	Context: Layout{Size: 0x110, Fields: arm64Fields(8)},
	// x19 to x28, fp and lr; then eight for d8 to d15.
	ContextPointers: Layout{Size: 0xa0, Fields: arm64Fields(-8 * int(arm64X19))[arm64X19 : arm64LR+1]},

	// Where in its frame a function keeps the record is its own choice (AAPCS64,
	// section 6.4.6): CoreCLR's JIT and C compilers put it at the frame's foot,
	// below locals and saved registers.
	FramePointer: Rule{Base: arm64FP, Offset: 16, RA: NoReg, NoSP: true, N: 2,
		Saved: [MaxSaved]Slot{{Reg: arm64PC, Off: -8}, {Reg: arm64FP, Off: -16}}},
	Leave:     arm64Leave,
	LeaveBody: arm64Flow.leaveBody,
	AfterCall: arm64AfterCall,
	Labels:    arm64Labels,
	CallTo:    arm64CallTo,
	Straight:  arm64Straight,
	PLT:       arm64PLT,
	Strip:     arm64Strip,
	PE:        PECodes{Entry: 8, Function: arm64PEFunction, Rule: arm64PERule},
}

// arm64Strip: Linux gives a program addresses of 48 bits unless it asks for more
// by mmap's hint (Documentation/arch/arm64/memory.rst); what lies above is
// authentication, or the tag that the CPU ignores.
func arm64Strip(a Addr) Addr { return a & (1<<48 - 1) }

// arm64Fields lays out x0 to x30, sp and pc, 8 bytes each, from off on.
func arm64Fields(off int) []Field {
	fs := make([]Field, 0, 33)
	for r := Reg(0); r <= arm64PC; r++ {
		fs = append(fs, Field{r, off + 8*int(r)})
	}
	return fs
}

func arm64Names() []string {
	return []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp", "pc"}
}
