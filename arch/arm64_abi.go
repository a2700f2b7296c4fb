package arch

import "encoding/binary"

// arm64CalleeSaved are x19 to x28 and the frame pointer: AAPCS64, section 6.1.1,
// and "Overview of ARM64 ABI conventions" of Microsoft's documentation, which
// agree. A function also hands back the low halves of v8 to v15, which no frame
// needs to be found.
const arm64CalleeSaved RegSet = 0x3ff<<arm64X19 | 1<<arm64FP

// arm64Linux is the ABI of Linux on AArch64.
var arm64Linux = &ABI{
	OS: Linux, Arch: ARM64, NativeFormat: "elf", CalleeSaved: arm64CalleeSaved,

	// struct elf_prstatus has user_pt_regs at 112: x0 to x30, sp, pc.
	PRStatus: Layout{Size: 112 + 34*8, Fields: arm64Fields(112)},
	// ucontext_t: uc_mcontext at 176, fault_address first, then regs, sp, pc
	// (arch/arm64/include/uapi/asm/sigcontext.h).
	Signal: Layout{Size: 176 + 8 + 33*8, Fields: arm64Fields(184)},
	// Behind sp, pc and pstate, aligned to 16 bytes, lie records of more registers;
	// the first is always struct fpsimd_context, FPSIMD_MAGIC
	// (setup_sigframe in arch/arm64/kernel/signal.c).
	SignalMark: &Mark{Off: 464, Word: 0x46508001},
	// mov x8, 139; svc 0. The frame is siginfo_t of 128 bytes, ucontext_t (struct
	// rt_sigframe, arch/arm64/kernel/signal.c). The vDSO's call frame information
	// leads to the caller of the interrupted function: it can name the link
	// register's place but not the pc's (arch/arm64/kernel/vdso/sigreturn.S).
	SigReturns: []SigReturn{{"\x68\x11\x80\xd2\x01\x00\x00\xd4", []int{0, 4}, 128}},
	Signals:    linuxSignals, SignalCodes: linuxSignalCodes, Access: arm64Access,
	Throw: &Throw{At: arm64Throw, Context: Layout{Size: 192, Fields: []Field{
		{arm64FP, 0}, {arm64LR, 8},
		{arm64X19, 32}, {arm64X19 + 1, 40}, {arm64X19 + 2, 48}, {arm64X19 + 3, 56}, {arm64X19 + 4, 64},
		{arm64X19 + 5, 72}, {arm64X19 + 6, 80}, {arm64X19 + 7, 88}, {arm64X19 + 8, 96}, {arm64X19 + 9, 104},
		{arm64SP, 112}, {arm64PC, 120}}}},
}

// arm64Throw reads "add x2, sp, #off; str x2, [x1, #8]; bl" and the brk behind it.
func arm64Throw(mem Memory, ret Addr) (off int, ok bool) {
	b := mem.View(ret-12, 16)
	if b == nil {
		return 0, false
	}
	add, str := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	bl, brk := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if add&^(0xfff<<10) != 0x910003e2 || str != 0xf9000422 || bl>>26 != 0x25 || brk&0xffe0001f != 0xd4200000 {
		return 0, false
	}
	return int(add >> 10 & 0xfff), true
}

// arm64Windows is the ABI of Windows on AArch64.
var arm64Windows = &ABI{OS: Windows, Arch: ARM64, NativeFormat: "pe", CalleeSaved: arm64CalleeSaved}
