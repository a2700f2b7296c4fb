package arch

// amd64Access reads the page fault's error code, gregs[REG_ERR], if gregs[REG_TRAPNO]
// says that there was one (sys/ucontext.h; arch/x86/include/asm/trap_pf.h).
func amd64Access(mem Memory, context Addr) Access {
	const gregs, regErr, regTrap, pageFault = 40, 19, 20, 14
	const write, fetch = 1 << 1, 1 << 4
	code, ok1 := mem.Word(context + gregs + 8*regErr)
	trap, ok2 := mem.Word(context + gregs + 8*regTrap)
	switch {
	case !ok1 || !ok2 || trap != pageFault:
		return AccessUnknown
	case code&fetch != 0:
		return AccessExecute
	case code&write != 0:
		return AccessWrite
	}
	return AccessRead
}
