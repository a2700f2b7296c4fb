package arch

// Names of operating systems, as GOOS spells them.
const (
	Linux   = "linux"
	Windows = "windows"
)

// An ABI is what an operating system adds to a CPU: what its calling convention
// has a function keep, what its kernel puts on a thread's stack, and where its
// dumps have a thread's registers. The rest of the program asks it and never asks
// which operating system it is. What an operating system does not have (Windows
// knows no signal handlers) is left zero.
type ABI struct {
	OS   string // Linux, Windows
	Arch *Arch
	// NativeFormat is the file format of programs and libraries of native code:
	// "elf" or "pe". Managed assemblies are PE files everywhere.
	NativeFormat string
	// CalleeSaved are the registers that a function hands back to its caller as
	// it found them. The stack pointer and the pc, which every unwind rule gives,
	// are not among them.
	CalleeSaved RegSet

	// PRStatus is where the desc of an ELF core's NT_PRSTATUS note has a thread's
	// registers.
	PRStatus Layout
	// TLSOffset is where the desc of an NT_PRSTATUS note has the thread
	// pointer, in bytes; 0 where it is in a note of its own (NT_ARM_TLS).
	TLSOffset int
	// Gate is code of the kernel's that every process can run though no mapping
	// that a core lists holds it; empty where there is none.
	Gate Span
	// Signal is where the ucontext_t that the kernel pushes for a signal handler
	// has the registers of the interrupted code.
	Signal Layout
	// SigReturns are the trampolines that signal handlers return to.
	SigReturns []SigReturn
	// SignalMark is a word of 4 bytes that each ucontext_t has which the kernel
	// pushes, and where; nil where there is none.
	SignalMark *Mark
	// Signals are the signals that it has, SignalCodes what si_code says of any.
	Signals     []Signal
	SignalCodes map[int32]string
	// Access says what a program did that caused the fault whose ucontext_t lies
	// at context. It is nil where no kernel says so.
	Access func(mem Memory, context Addr) Access
	// Throw is how NativeAOT's runtime begins an exception; nil where that is not
	// known.
	Throw *Throw
}

// A Throw is what NativeAOT's RhpThrowEx, RhpThrowHwEx and RhpRethrow leave on the
// stack: a PAL_LIMITED_CONTEXT with the registers of the code that threw. For a
// fault in managed code nothing has called: the signal handler has put RhpThrowHwEx
// there and the faulting pc in a register, so no unwind information is right
// (src/coreclr/nativeaot/Runtime/<cpu>/ExceptionHandling.S).
type Throw struct {
	Context Layout // the PAL_LIMITED_CONTEXT
	// At returns how far above the stack pointer the context lies while the call
	// that returns to ret runs. It reports false where the instructions before
	// ret are not those of the runtime, or not at hand.
	At func(mem Memory, ret Addr) (off int, ok bool)
}

// A SigReturn is the code that a signal handler of Linux returns to, which asks
// the kernel to put back the registers of what was interrupted. The system
// call's number is part of the kernel's ABI, and so is where the registers lie;
// debuggers know such code by its bytes too, as its call frame information is
// often missing (musl; the page that qemu-user makes) or wrong (see ARM64).
type SigReturn struct {
	Code    string // all of it
	Starts  []int  // where its instructions begin, in bytes; the first is 0
	Context int    // where the ucontext_t lies, in bytes from the stack pointer
}

// A Mark is a word that tells what lies around it.
type Mark struct {
	Off  int // in bytes
	Word uint32
}

// abis lists what is known, a row for an operating system on a CPU.
var abis = []*ABI{amd64Linux, amd64Windows, arm64Linux, arm64Windows}

// On returns what the operating system os, as GOOS spells it, adds to a; nil
// if that is not known.
func (a *Arch) On(os string) *ABI {
	for _, abi := range abis {
		if abi.Arch == a && abi.OS == os {
			return abi
		}
	}
	return nil
}
