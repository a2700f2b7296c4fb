package arch

import "golang.org/x/arch/x86/x86asm"

// amd64EnterHook finds what a function of CoreCLR's JIT hands to the enter hook of
// a profiler, by following its prologue to the first call: on Unix the function's
// id in r14 and its caller's stack pointer in r15 (src/coreclr/jit/codegenxarch.cpp
// of 8.0 to 10.0, genProfilingEnterCallback), which no other call takes. On Windows
// they are in registers that any call has arguments in, so nothing is told there.
func amd64EnterHook(mem Memory, start Addr) (id uint64, ok bool) {
	pushed, frame := 0, false
	for at := start; at-start < amd64PrologueBytes; {
		b := viewUpTo(mem, at, 15)
		if n := amd64VEXLen(b); n > 0 { // clears locals
			at += Addr(n)
			continue
		}
		in, known := amd64Decode(b)
		if !known {
			return 0, false
		}
		imm, isImm := in.Args[1].(x86asm.Imm)
		place, isMem := in.Args[1].(x86asm.Mem)
		switch {
		case in.Op == x86asm.CALL:
			return id, id != 0 && frame && pushed == 2
		case in.Op == x86asm.RET || in.Op == x86asm.JMP:
			return 0, false
		case in.Op == x86asm.PUSH && (in.Args[0] == x86asm.R14 || in.Args[0] == x86asm.R15):
			pushed++
		case in.Op == x86asm.MOV && in.Args[0] == x86asm.R14:
			if id = 0; isImm {
				id = uint64(imm)
			}
		case in.Args[0] == x86asm.R15:
			frame = in.Op == x86asm.LEA && isMem && (place.Base == x86asm.RBP || place.Base == x86asm.RSP) && place.Index == 0
		}
		at += Addr(in.Len)
	}
	return 0, false
}
