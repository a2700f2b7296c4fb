package arch

import "encoding/binary"

// amd64Linux is the ABI of Linux on x86-64.
var amd64Linux = &ABI{
	OS: Linux, Arch: AMD64, NativeFormat: "elf",
	// System V ABI, AMD64 supplement, section 3.2.1.
	CalleeSaved: Regset(amd64RBX, amd64RBP, amd64R12, amd64R13, amd64R14, amd64R15),

	// struct elf_prstatus has its elf_gregset_t at 112: user_regs_struct in
	// the order of the kernel's pt_regs (arch/x86/include/asm/user_64.h).
	PRStatus: Layout{Size: 112 + 27*8, Fields: []Field{
		{amd64R15, 112}, {amd64R14, 120}, {amd64R13, 128}, {amd64R12, 136}, {amd64RBP, 144},
		{amd64RBX, 152}, {amd64R11, 160}, {amd64R10, 168}, {amd64R9, 176}, {amd64R8, 184},
		{amd64RAX, 192}, {amd64RCX, 200}, {amd64RDX, 208}, {amd64RSI, 216}, {amd64RDI, 224},
		{amd64RIP, 240}, {amd64RSP, 264}}},
	// fs_base is number 21 of the 27 (user_regs_struct of sys/user.h).
	TLSOffset: 112 + 21*8,
	// struct ucontext_t: uc_mcontext.gregs at 40 (sys/ucontext.h).
	Signal: Layout{Size: 40 + 23*8, Fields: []Field{
		{amd64R8, 40}, {amd64R9, 48}, {amd64R10, 56}, {amd64R11, 64}, {amd64R12, 72},
		{amd64R13, 80}, {amd64R14, 88}, {amd64R15, 96}, {amd64RDI, 104}, {amd64RSI, 112},
		{amd64RBP, 120}, {amd64RBX, 128}, {amd64RDX, 136}, {amd64RAX, 144}, {amd64RCX, 152},
		{amd64RSP, 160}, {amd64RIP, 168}}},
	// The vsyscall page (arch/x86/include/uapi/asm/vsyscall.h).
	Gate: Span{Lo: 0xffffffffff600000, Hi: 0xffffffffff601000},
	// The frame is ucontext_t, siginfo_t, once the handler has popped its return
	// address (struct rt_sigframe, arch/x86/include/asm/sigframe.h).
	SigReturns: []SigReturn{
		{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", []int{0, 7}, 0}, // mov rax, 15; syscall
		{"\xb8\x0f\x00\x00\x00\x0f\x05", []int{0, 5}, 0},         // mov eax, 15; syscall
	},
	Signals: linuxSignals, SignalCodes: linuxSignalCodes, Access: amd64Access,
	Throw: &Throw{At: amd64Throw, Context: Layout{Size: 80, Fields: []Field{
		{amd64RIP, 0}, {amd64RSP, 8}, {amd64RBP, 16}, {amd64RBX, 32},
		{amd64R12, 48}, {amd64R13, 56}, {amd64R14, 64}, {amd64R15, 72}}}},
}

// amd64Throw reads "lea rdx, [rsp+off]; mov [rsi+8], rdx; call" and the int3
// behind it.
func amd64Throw(mem Memory, ret Addr) (off int, ok bool) {
	b := mem.View(ret-17, 18)
	if b == nil || string(b[:4]) != "\x48\x8d\x94\x24" || string(b[8:13]) != "\x48\x89\x56\x08\xe8" || b[17] != 0xcc {
		return 0, false
	}
	return int(int32(binary.LittleEndian.Uint32(b[4:]))), true
}

// amd64Windows is the ABI of Windows on x86-64.
var amd64Windows = &ABI{
	OS: Windows, Arch: AMD64, NativeFormat: "pe",
	// "x64 software conventions" of Microsoft's documentation, section "Register
	// volatility and preservation".
	CalleeSaved: Regset(amd64RBX, amd64RBP, amd64RSI, amd64RDI, amd64R12, amd64R13, amd64R14, amd64R15),
}
