package arch

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
}

// arm64Windows is the ABI of Windows on AArch64.
var arm64Windows = &ABI{OS: Windows, Arch: ARM64, NativeFormat: "pe", CalleeSaved: arm64CalleeSaved}
