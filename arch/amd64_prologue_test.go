package arch

import "testing"

// TestFromPrologue follows prologues as CoreCLR's JIT writes them; each row's
// bytes end before the call whose return address is asked for.
func TestFromPrologue(t *testing.T) {
	const start = 0x1000
	for _, c := range []struct {
		name, code string
		offset, fp int32 // CFA - rsp, and CFA - rbp where rbp is the frame pointer
		saved      []Slot
	}{
		// push rbp; push r15; push r14; sub rsp, 10h; lea rbp, [rsp+20h]; mov r14, imm64; lea r15, [rbp+10h]; call [rip+x]
		{"frame pointer above the saves", "\x55\x41\x57\x41\x56\x48\x83\xec\x10\x48\x8d\x6c\x24\x20\x49\xbe\x28\xb8\x4f\x57\x97\x7f\x00\x00\x4c\x8d\x7d\x10\xff\x15\x76\x59\x5e\x7c",
			48, 16, []Slot{{-8, amd64RIP}, {-16, amd64RBP}, {-24, amd64R15}, {-32, amd64R14}}},
		// push rbp; sub rsp, 20h; lea rbp, [rsp+20h]; xor eax, eax; mov [rbp-18h], rax; call
		{"frame pointer", "\x55\x48\x83\xec\x20\x48\x8d\x6c\x24\x20\x33\xc0\x48\x89\x45\xe8\xe8\x00\x00\x00\x00",
			48, 16, []Slot{{-8, amd64RIP}, {-16, amd64RBP}}},
		// push rbp; mov rbp, rsp; push rbx; push rax; call
		{"mov", "\x55\x48\x89\xe5\x53\x50\xe8\x00\x00\x00\x00",
			32, 16, []Slot{{-8, amd64RIP}, {-16, amd64RBP}, {-24, amd64RBX}}},
		// push rbx; sub rsp, 20h; mov rbx, rdi; call
		{"no frame pointer", "\x53\x48\x83\xec\x20\x48\x89\xfb\xe8\x00\x00\x00\x00",
			48, 0, []Slot{{-8, amd64RIP}, {-16, amd64RBX}}},
		// push rax; call: the push is room
		// push rbp; push r15; lea r11, [rsp-1118h]; call [rip+x]; mov rsp, r11; lea rbp, [rsp+1120h]; call
		{"probed, frame pointer", "\x55\x41\x57\x4c\x8d\x9c\x24\xe8\xee\xff\xff\xff\x15\x30\xfb\x48\x00\x49\x8b\xe3\x48\x8d\xac\x24\x20\x11\x00\x00\xe8\x00\x00\x00\x00",
			4400, 16, []Slot{{-8, amd64RIP}, {-16, amd64RBP}, {-24, amd64R15}}},
		// push rbx; lea r11, [rsp-1000h]; call [rip+x]; mov rsp, r11; mov rbx, rdi; call
		{"probed", "\x53\x4c\x8d\x9c\x24\x00\xf0\xff\xff\xff\x15\x30\xfb\x48\x00\x49\x8b\xe3\x48\x89\xfb\xe8\x00\x00\x00\x00",
			16 + 4096, 0, []Slot{{-8, amd64RIP}, {-16, amd64RBX}}},
		// the same, behind the call that probes
		{"probing", "\x53\x4c\x8d\x9c\x24\x00\xf0\xff\xff\xff\x15\x30\xfb\x48\x00", 16, 0, []Slot{{-8, amd64RIP}, {-16, amd64RBX}}},
		// push rbx; test [rsp-1000h], eax; sub rsp, 1000h; call
		{"touched", "\x53\x85\x84\x24\x00\xf0\xff\xff\x48\x81\xec\x00\x10\x00\x00\xe8\x00\x00\x00\x00",
			16 + 4096, 0, []Slot{{-8, amd64RIP}, {-16, amd64RBX}}},
		{"room by a push", "\x50\xff\x15\xc1\xcf\xfb\xff", 16, 0, []Slot{{-8, amd64RIP}}},
	} {
		mem := flatAt(start, []byte(c.code))
		// As the prologue leaves them, and as they are in a funclet: rsp is lower.
		var regs, funclet, r = Regs{}, Regs{}, Rule{}
		const cfa = 0x7ff000
		regs.Set(amd64RSP, uint64(cfa-c.offset))
		regs.Set(amd64RBP, uint64(cfa-c.fp))
		funclet.Set(amd64RSP, uint64(cfa-c.offset-64))
		funclet.Set(amd64RBP, uint64(cfa-c.fp))
		pc := start + Addr(len(c.code))
		once, ok := AMD64.Prologue(mem, start, pc, &regs, &r)
		if !ok || once != (c.fp != 0) {
			t.Errorf("%s: %v, for once %v", c.name, ok, once)
			continue
		}
		if _, ok := AMD64.Prologue(mem, start, pc, &funclet, new(Rule)); ok != (c.fp == 0) {
			t.Errorf("%s: of a lower stack pointer: %v", c.name, ok)
		}
		if _, ok := AMD64.Prologue(mem, start, pc, &Regs{}, new(Rule)); ok != (c.fp == 0) {
			t.Errorf("%s: of unknown registers: %v", c.name, ok)
		}
		ok = r.Base == amd64RSP && r.Offset == c.offset && int(r.N) == len(c.saved) && r.RA == NoReg
		for i := range c.saved {
			ok = ok && r.Saved[i] == c.saved[i]
		}
		if !ok {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	// mov rax, [rbp]; push rax; sub rsp, 20h; mov [rsp+68h], r15; lea rbp, [rsp+20h]; call: .NET 10's
	// on-stack replacement.
	const replaced = "\x48\x8b\x45\x00\x50\x48\x83\xec\x20\x4c\x89\x7c\x24\x68\x48\x8d\x6c\x24\x20\xff\x15\x00\x00\x00\x00"
	for _, code := range []string{replaced, replaced[4:], "", "\xc3", "\x48\x89\xf8\xe8\x00\x00\x00\x00", "\xe9\x00\x00\x00\x00"} {
		var r Rule
		if _, ok := AMD64.Prologue(flatAt(start, []byte(code)), start, start+Addr(len(code)), &Regs{}, &r); ok {
			t.Errorf("%x: a rule: %+v", code, r)
		}
	}
}
