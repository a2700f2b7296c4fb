package arch

import (
	"encoding/binary"
	"strings"
	"testing"
)

// TestLeaveBody has code as CoreCLR's JIT writes it; `|` stands behind a call.
func TestLeaveBody(t *testing.T) {
	for _, c := range []struct {
		a                *Arch
		name, code, want string
	}{
		{AMD64, "body", "55 41 57 48 83 ec 28 48 8d 6c 24 30 ff 15 00 10 00 00 | 48 83 c4 28 41 5f 5d c3",
			"cfa=rsp+64 rip=[-8] rbp=[-16] r15=[-24]"},
		// test eax, eax; je +6; vmovups [rbp-10h], ymm0; mov rbx, rax; call; add rsp, 8; pop rbx; pop rbp; ret
		{AMD64, "branches, calls and AVX", "| 85 c0 74 06 c5 fc 11 45 f0 90 48 89 c3 e8 00 00 00 00 | 48 83 c4 08 5b 5d c3",
			"cfa=rsp+32 rip=[-8] rbx=[-24] rbp=[-16]; cfa=rsp+32 rip=[-8] rbx=[-24] rbp=[-16]"},
		// The way on leads to a throw; that through the branch returns.
		{AMD64, "throws or returns", "| 85 c0 75 06 ff 15 00 10 00 00 | cc 48 83 c4 20 5d c3", "no; no"},
		{AMD64, "throws or returns, on", "| 85 c0 75 07 ff 15 00 10 00 00 cc 48 83 c4 20 5d c3", "cfa=rsp+48 rip=[-8] rbp=[-16]"},
		// Behind a stackalloc, and before one: lea rsp, [rbp-10h]; pop rbx; pop r15; pop rbp; ret
		{AMD64, "stackalloc", "| 48 83 ec 40 48 8b c4 e8 00 00 00 00 | 48 8d 65 f0 5b 41 5f 5d c3",
			"cfa=rbp+16 rip=[-8] rbx=[-32] rbp=[-16] r15=[-24]; cfa=rbp+16 rip=[-8] rbx=[-32] rbp=[-16] r15=[-24]"},
		{AMD64, "the stack pointer has moved", "| 48 83 ec 10 e8 00 00 00 00 | 48 83 c4 10 5d c3", "no; cfa=rsp+32 rip=[-8] rbp=[-16]"},
		{AMD64, "on-stack replacement", "| eb 04 90 90 90 90 48 83 c4 58 5b 41 5e 41 5f 5d c3", "cfa=rsp+128 rip=[-8] rbx=[-40] rbp=[-16] r14=[-32] r15=[-24]"},
		{AMD64, "tail call", "| 48 83 c4 28 5b 5d e9 00 00 10 00", "cfa=rsp+64 rip=[-8] rbx=[-24] rbp=[-16]"},
		{AMD64, "a frame that is not aligned", "| 48 83 c4 28 c3 | c3", "cfa=rsp+48 rip=[-8]; no"},
		{AMD64, "throws", "| cc 48 83 c4 28 c3", "no"},
		{AMD64, "for ever", "| 90 eb fd", "no"},
		{AMD64, "switch", "| ff e0 48 83 c4 28 c3", "no"},
		{AMD64, "cut short", "| 48 83", "no"},
		{ARM64, "body", "a9be7bfd f9000bf3 910003fd 94000000 | f9400bf3 a8c27bfd d65f03c0", "cfa=sp+32 pc=[-24] x19=[-16] fp=[-32]"},
		{ARM64, "branches and calls", "| b4000060 aa1303e0 94000000 | a94153f3 a8c27bfd d65f03c0",
			"cfa=sp+32 pc=[-24] x19=[-16] x20=[-8] fp=[-32]; cfa=sp+32 pc=[-24] x19=[-16] x20=[-8] fp=[-32]"},
		{ARM64, "stackalloc", "| cb2063ff 94000000 | 910003bf a8c27bfd d65f03c0", "cfa=fp+32 pc=[-24] fp=[-32]; cfa=fp+32 pc=[-24] fp=[-32]"},
		{ARM64, "the stack pointer has moved", "| d10043ff 94000000 | 910043ff a8c17bfd d65f03c0", "no; cfa=sp+32 pc=[-8] fp=[-16]"},
		{ARM64, "the return address is not loaded", "| aa1303e0 d65f03c0", "no"},
		{ARM64, "throws", "| d43e0000 a8c27bfd d65f03c0", "no"},
		{ARM64, "for ever", "| d503201f 17ffffff", "no"},
		{ARM64, "switch", "| d61f0000 a8c27bfd d65f03c0", "no"},
	} {
		var code []byte
		var pcs []int
		for i, part := range strings.Split(c.code, "|") {
			if i > 0 {
				pcs = append(pcs, len(code))
			}
			if c.a == AMD64 {
				code = append(code, bytesOf(t, part)...)
				continue
			}
			for _, w := range strings.Fields(part) {
				code = binary.LittleEndian.AppendUint32(code, binary.BigEndian.Uint32(bytesOf(t, w)))
			}
		}
		var got []string
		for _, at := range pcs {
			var r Rule
			if c.a.LeaveBody(flatAt(0x7f0000, code), 0x7f0000+Addr(at), &r) {
				got = append(got, ruleText(c.a, &r))
			} else {
				got = append(got, "no")
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.a.Name, c.name, s, c.want)
		}
	}
}

// FuzzLeaveBody follows any bytes, and takes them for a prologue.
func FuzzLeaveBody(f *testing.F) {
	for _, s := range []string{"85 c0 75 07 ff 15 00 10 00 00 cc 48 83 c4 20 5d c3", "48 83 ec 40 48 8d 65 f0 5b 41 5f 5d c3", "62 f1 7c 48 11 45 f0 c3",
		"c4 e3 79 16 45 f0 01 75 f4 eb f2", "f3 53 41 a9 fd 7b c2 a8 c0 03 5f d6", "55 48 83 ec 20 48 8d 6c 24 20 e8 00 00 00 00"} {
		f.Add(bytesOf(f, s), uint64(0x8000), uint64(0x8020))
	}
	f.Fuzz(func(t *testing.T, b []byte, sp, fp uint64) {
		m := flatAt(0x10000, b)
		for _, a := range All() {
			var regs Regs
			regs.Set(a.SP, sp)
			regs.Set(a.FP, fp)
			var r Rule
			if a.LeaveBody(m, m.At, &r) && (r.N == 0 || r.N > MaxSaved || r.RA != NoReg || r.Base != a.SP && r.Base != a.FP) {
				t.Errorf("%s: %+v", a.Name, r)
			}
			if a.Prologue == nil {
				continue
			}
			if _, ok := a.Prologue(m, m.At, m.At+Addr(len(b)), &regs, &r); ok && (r.N == 0 || r.Base != a.SP || r.Offset < 8) {
				t.Errorf("%s: %+v", a.Name, r)
			}
		}
	})
}
