package arch

import (
	"debug/elf"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// DWARF numbers of x86-64 registers (System V ABI, AMD64 supplement, figure 3.36).
const (
	amd64RAX Reg = regnum.AMD64_Rax
	amd64RDX Reg = regnum.AMD64_Rdx
	amd64RCX Reg = regnum.AMD64_Rcx
	amd64RBX Reg = regnum.AMD64_Rbx
	amd64RSI Reg = regnum.AMD64_Rsi
	amd64RDI Reg = regnum.AMD64_Rdi
	amd64RBP Reg = regnum.AMD64_Rbp
	amd64RSP Reg = regnum.AMD64_Rsp
	amd64R8  Reg = regnum.AMD64_R8
	amd64R9  Reg = regnum.AMD64_R9
	amd64R10 Reg = regnum.AMD64_R10
	amd64R11 Reg = regnum.AMD64_R11
	amd64R12 Reg = regnum.AMD64_R12
	amd64R13 Reg = regnum.AMD64_R13
	amd64R14 Reg = regnum.AMD64_R14
	amd64R15 Reg = regnum.AMD64_R15
	amd64RIP Reg = regnum.AMD64_Rip
)

// AMD64 is x86-64.
var AMD64 = &Arch{
	Name: "amd64", Machine: elf.EM_X86_64, Word: 8,
	// 0x8664 XOR 0x7B79 (Linux), 0x4644 (macOS), 0x1993 (NetBSD), 0xADC4 (FreeBSD):
	// src/coreclr/inc/pedecoder.h, IMAGE_FILE_MACHINE_NATIVE_OS_OVERRIDE.
	PETypes: []uint16{0x8664, 0x8664 ^ 0x7B79, 0x8664 ^ 0x4644, 0x8664 ^ 0xADC4, 0x8664 ^ 0x1993},
	PC:      amd64RIP, SP: amd64RSP, FP: amd64RBP, LR: NoReg,
	Names: []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip"},

	// CONTEXT of winnt.h; the PAL's has the same layout (src/coreclr/pal/inc/pal.h).
	Context: Layout{Size: 0x100, Fields: []Field{
		{amd64RAX, 0x78}, {amd64RCX, 0x80}, {amd64RDX, 0x88}, {amd64RBX, 0x90}, {amd64RSP, 0x98},
		{amd64RBP, 0xa0}, {amd64RSI, 0xa8}, {amd64RDI, 0xb0}, {amd64R8, 0xb8}, {amd64R9, 0xc0},
		{amd64R10, 0xc8}, {amd64R11, 0xd0}, {amd64R12, 0xd8}, {amd64R13, 0xe0}, {amd64R14, 0xe8},
		{amd64R15, 0xf0}, {amd64RIP, 0xf8}}},
	// Sixteen for xmm0 to xmm15 come first, then as many in the CONTEXT's order.
	ContextPointers: Layout{Size: 0x100, Fields: []Field{
		{amd64RBX, 0x98}, {amd64RBP, 0xa8}, {amd64RSI, 0xb0}, {amd64RDI, 0xb8},
		{amd64R12, 0xe0}, {amd64R13, 0xe8}, {amd64R14, 0xf0}, {amd64R15, 0xf8}}},

	FramePointer: Rule{Base: amd64RBP, Offset: 16, RA: NoReg, N: 2,
		Saved: [MaxSaved]Slot{{Reg: amd64RIP, Off: -8}, {Reg: amd64RBP, Off: -16}}},
	Leave:     amd64Leave,
	Prologue:  amd64FromPrologue,
	EnterHook: amd64EnterHook,
	LeaveBody: amd64Flow.leaveBody,
	AfterCall: amd64AfterCall,
	CallTo:    amd64CallTo,
	Straight:  amd64Straight,
	PLT:       amd64PLT,
	Labels:    amd64Labels,
	Strip:     func(a Addr) Addr { return a },
	PE:        PECodes{Entry: 12, Function: amd64PEFunction, Rule: amd64PERule, Chained: amd64PEChained},
}
