package arch

// linuxSignals are the signals that end processes, or stop them for a dump, and
// their numbers on x86-64 and AArch64 (include/uapi/asm-generic/signal.h). The
// codes are those of include/uapi/asm-generic/siginfo.h.
var linuxSignals = []Signal{
	{Number: 1, Name: "SIGHUP"},
	{Number: 2, Name: "SIGINT"},
	{Number: 3, Name: "SIGQUIT"},
	{Number: 4, Name: "SIGILL", Codes: []string{"ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"}},
	{Number: 5, Name: "SIGTRAP", Codes: []string{"TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK"}},
	{Number: 6, Name: "SIGABRT", Aborts: true},
	{Number: 7, Name: "SIGBUS", Codes: []string{"BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"}},
	{Number: 8, Name: "SIGFPE", Codes: []string{"FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"}},
	{Number: 9, Name: "SIGKILL"},
	{Number: 10, Name: "SIGUSR1"},
	{Number: 11, Name: "SIGSEGV", Accesses: true, Codes: []string{"SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI", "SEGV_ADIDERR", "SEGV_ADIPERR", "SEGV_MTEAERR", "SEGV_MTESERR"}},
	{Number: 12, Name: "SIGUSR2"},
	{Number: 13, Name: "SIGPIPE"},
	{Number: 14, Name: "SIGALRM"},
	{Number: 15, Name: "SIGTERM"},
	{Number: 19, Name: "SIGSTOP"},
	{Number: 24, Name: "SIGXCPU"},
	{Number: 25, Name: "SIGXFSZ"},
	{Number: 31, Name: "SIGSYS", Codes: []string{"SYS_SECCOMP", "SYS_USER_DISPATCH"}},
}

// linuxSignalCodes are the codes that any signal may have, but for SI_USER: it is
// 0, which is also what a dump has where its writer did not know the code.
var linuxSignalCodes = map[int32]string{
	128: "SI_KERNEL", -1: "SI_QUEUE", -2: "SI_TIMER", -3: "SI_MESGQ", -4: "SI_ASYNCIO", -5: "SI_SIGIO", -6: "SI_TKILL",
}
