package arch

import (
	"encoding/binary"
	"strings"
	"testing"
)

// peCase is one function: its unwind information at 0x100, that of its parent
// at 0x180, its code from 0x200 on, with `|` before the instructions at whose
// address the rule is asked for.
type peCase struct {
	name, info, parent, code string
	want                     string
}

// memory lays the case out and returns the RVAs of the instructions asked for.
func (c *peCase) memory(t testing.TB) (m flat, fn PEFunction, pcs []uint32) {
	b := make([]byte, 0x200)
	copy(b[0x100:], bytesOf(t, c.info))
	copy(b[0x180:], bytesOf(t, c.parent))
	for i, part := range strings.Split(c.code, "|") {
		if i > 0 {
			pcs = append(pcs, uint32(len(b)))
		}
		b = append(b, bytesOf(t, part)...)
	}
	return flatAt(0x10000, b), PEFunction{0x200, uint32(len(b)), 0x100}, pcs
}

// TestAMD64PERule has a row for each operation and each shape of prologue and epilogue.
func TestAMD64PERule(t *testing.T) {
	for _, c := range []peCase{
		{"nothing", "01 00 00 00", "", "| 90 | c3", "cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"pushes and room, rsp-based RBP frame as the JIT makes it", "01 07 03 00 07 22 03 c0 01 50", "",
			"| 55 | 41 54 | 48 83 ec 18 | 48 8d 6c 24 20 | 48 8d 65 f8 | 41 5c | 5d | c3",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+24 rip=[-8] rbp=[-16] r12=[-24]; " +
				"cfa=rsp+48 rip=[-8] rbp=[-16] r12=[-24]; cfa=rsp+48 rip=[-8] rbp=[-16] r12=[-24]; " +
				"cfa=rsp+24 rip=[-8] rbp=[-16] r12=[-24]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"frame register with an offset", "01 0a 03 25 0a 03 05 52 01 50", "",
			"| 55 | 48 83 ec 30 | 48 8d 6c 24 20 | 90 | 48 8d 65 10 | 5d | c3",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+64 rip=[-8] rbp=[-16]; " +
				"cfa=rbp+32 rip=[-8] rbp=[-16]; cfa=rbp+32 rip=[-8] rbp=[-16]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"frame register far above rsp, on Unix", "01 10 06 f5 10 0b 20 00 00 00 08 01 40 00 01 50", "",
			"55 48 81 ec 00 02 00 00 48 8d ac 24 00 02 00 00 | 90", "cfa=rbp+16 rip=[-8] rbp=[-16]"},
		{"frame register 240 above rsp, on Windows", "01 0e 04 f5 0e 03 06 01 20 00 01 50", "",
			"55 48 81 ec 00 01 00 00 48 8d ac 24 f0 00 00 00 | 90", "cfa=rbp+32 rip=[-8] rbp=[-16]"},
		{"push below the frame register", "01 05 03 05 05 30 04 03 01 50", "", "55 48 89 e5 53 | 90 | 5b | 5d | c3",
			"cfa=rbp+16 rip=[-8] rbx=[-24] rbp=[-16]; cfa=rsp+24 rip=[-8] rbx=[-24] rbp=[-16]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"saves in the caller's home", "01 0a 04 00 0a 34 06 00 0a 32 06 70", "",
			"| 48 89 5c 24 08 57 | 48 83 ec 20 | 90 48 8b 5c 24 30 | 48 83 c4 20 | 5f | c3",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8] rdi=[-16]; cfa=rsp+48 rip=[-8] rbx=[0] rdi=[-16]; " +
				"cfa=rsp+48 rip=[-8] rdi=[-16]; cfa=rsp+16 rip=[-8] rdi=[-16]; cfa=rsp+8 rip=[-8]"},
		{"far save, large rooms", "01 10 08 00 10 75 00 00 09 00 10 11 00 00 10 00 08 01 00 00", "",
			"90909090909090909090909090909090 | 90", "cfa=rsp+1048584 rip=[-8] rdi=[-458760]"},
		{"XMM saves", "01 10 06 00 10 69 00 00 01 00 10 78 04 00 04 12", "", "909090909090909090909090909090909090 | 90", "cfa=rsp+24 rip=[-8]"},
		{"machine frame", "01 04 02 00 04 32 00 0a", "", "| 48 83 ec 20 | 90",
			"cfa=rsp+8 rip=[-8] rsp=[16] signal; cfa=rsp+40 rip=[-8] rsp=[16] signal"},
		{"machine frame with an error code", "01 01 02 00 01 00 00 1a", "", "| 50 | 90",
			"cfa=rsp+16 rip=[-8] rsp=[16] signal; cfa=rsp+24 rip=[-8] rsp=[16] rax=[-24] signal"},
		{"chained", "21 05 02 00 05 34 04 00 40 04 00 00 80 04 00 00 80 01 00 00", "01 05 02 00 05 32 01 60",
			"| 48 89 5c 24 20 | 90", "cfa=rsp+48 rip=[-8] rsi=[-16]; cfa=rsp+48 rip=[-8] rbx=[-16] rsi=[-16]"},
		{"chained to itself", "21 00 00 00 00 02 00 00 40 02 00 00 00 01 00 00", "", "| c3", "bad"},
		{"version 2", "02 05 04 00 02 16 00 06 05 32 01 30", "", "53 48 83 ec 20 | 90 48 83 c4 20 | 5b | c3",
			"cfa=rsp+48 rip=[-8] rbx=[-16]; cfa=rsp+16 rip=[-8] rbx=[-16]; cfa=rsp+8 rip=[-8]"},
		{"call in the prologue", "01 0d 03 00 0d 01 00 02 01 30", "", "53 b8 00 10 00 00 e8 00 00 00 00 | 48 29 c4",
			"cfa=rsp+16 rip=[-8] rbx=[-16]"},
		{"tail call", "01 05 02 00 05 32 01 30", "", "53 48 83 ec 20 90 48 83 c4 20 | 5b | e9 00 10 00 00",
			"cfa=rsp+16 rip=[-8] rbx=[-16]; cfa=rsp+8 rip=[-8]"},
		{"tail call through memory", "01 01 01 00 01 30", "", "53 90 5b | ff 25 00 10 00 00", "cfa=rsp+8 rip=[-8]"},
		{"tail call through a register", "01 05 02 00 05 32 01 30", "", "53 48 83 ec 20 90 48 83 c4 20 5b | 48 ff e0", "cfa=rsp+8 rip=[-8]"},
		{"switch", "01 05 02 00 05 32 01 30", "", "53 48 83 ec 20 90 5b | ff e0", "cfa=rsp+48 rip=[-8] rbx=[-16]"},
		{"jump to the cold part", "01 05 02 00 05 32 01 30", "", "53 48 83 ec 20 48 ff cb | e9 00 10 00 00", "cfa=rsp+48 rip=[-8] rbx=[-16]"},
		{"jump to itself", "01 05 02 00 05 32 01 30", "", "53 48 83 ec 20 90 48 83 c4 20 5b | eb f3", "cfa=rsp+8 rip=[-8]"},
		{"jump to a shared end", "01 01 01 00 01 30", "", "53 90 | eb 02 90 90 | 5b c3", "cfa=rsp+16 rip=[-8] rbx=[-16]; cfa=rsp+16 rip=[-8] rbx=[-16]"},
		{"vzeroupper, rep ret", "01 01 01 00 01 30", "", "53 | c5 f8 77 | 5b | c5 f8 77 | f3 c3",
			"cfa=rsp+16 rip=[-8] rbx=[-16]; cfa=rsp+16 rip=[-8] rbx=[-16]; cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"leave", "01 04 02 05 04 03 01 50", "", "55 48 89 e5 90 | c9 | c3", "cfa=rbp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"return in the prologue", "01 0f 04 00 0f 34 05 00 05 32 01 70", "", "57 48 83 ec 20 75 06 48 83 c4 20 | 5f | c3 48 89 5c 24 28",
			"cfa=rsp+16 rip=[-8] rdi=[-16]; cfa=rsp+8 rip=[-8]"},
		{"code cut short", "01 01 01 00 01 30", "", "53 90 |", "no code"},
		{"code cut short, version 2", "02 01 03 00 02 06 10 06 01 30", "", "53 90 |", "cfa=rsp+16 rip=[-8] rbx=[-16]"},
		{"version 3", "03 00 00 00", "", "| c3", "bad"},
		{"unknown operation", "01 00 01 00 00 0c", "", "| c3", "bad"},
		{"code without its operand", "01 00 01 00 00 04", "", "| c3", "bad"},
	} {
		m, fn, pcs := c.memory(t)
		var got []string
		for _, pc := range pcs {
			var r Rule
			exact := c.name != "call in the prologue"
			switch AMD64.PE.Rule(&PEQuery{m, m.At, fn, PC{m.At + Addr(pc), exact}}, &r).Status {
			case PEOK:
				got = append(got, ruleText(AMD64, &r))
			case PENoCode:
				got = append(got, "no code")
			case PEBad:
				got = append(got, "bad")
			case PEMissing:
				got = append(got, "missing")
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}

// TestPEMissing cuts an unwind information short at each byte: the result says
// so and names a place that is not at hand as a whole.
func TestPEMissing(t *testing.T) {
	info := bytesOf(t, "01 05 02 00 05 32 01 60")
	for n := range info {
		var r Rule
		res := AMD64.PE.Rule(&PEQuery{flatAt(0x100, info[:n]), 0, PEFunction{0x200, 0x300, 0x100}, PC{0x280, false}}, &r)
		if res.Status != PEMissing || res.At+4 <= 0x100+Addr(n) {
			t.Errorf("amd64, %d bytes: %v", n, res)
		}
	}
	info = bytesOf(t, "10004008 99e4e4e4 00000000")
	for n := range info[:8] {
		var r Rule
		res := ARM64.PE.Rule(&PEQuery{flatAt(0x100, info[:n]), 0, PEFunction{0x200, 0, 0x100}, PC{0x220, true}}, &r)
		if res.Status != PEMissing || res.At+4 <= 0x100+Addr(n) {
			t.Errorf("arm64, %d bytes: %v", n, res)
		}
	}
}

// TestPEAllocs holds rules to their cost: a walk asks for one a frame.
func TestPEAllocs(t *testing.T) {
	m, fn, pcs := (&peCase{"", "01 07 03 00 07 22 03 c0 01 50", "", "55 41 54 48 83 ec 18 | 90 41 5c 5d c3", ""}).memory(t)
	var r Rule
	for _, q := range []PEQuery{
		{m, m.At, fn, PC{m.At + Addr(pcs[0]), true}},
		{m, m.At, PEFunction{0x200, 0, 1 | 16<<2 | 2<<16 | 3<<21 | 2<<23}, PC{m.At + 0x204, true}},
	} {
		for _, a := range All() {
			if n := testing.AllocsPerRun(100, func() { a.PE.Rule(&q, &r) }); n > 0 {
				t.Errorf("%s: %v allocations", a.Name, n)
			}
		}
	}
}

// BenchmarkPERule finds a rule for a return address, and for a pc that is
// about to run in the body and in an epilogue.
func BenchmarkPERule(b *testing.B) {
	c := peCase{"", "01 07 03 00 07 22 03 c0 01 50", "", "55 41 54 48 83 ec 18 48 8d 6c 24 20 | 90 | 41 5c | 5d c3", ""}
	m, fn, pcs := c.memory(b)
	arm := flatAt(0x10000, make([]byte, 0x200))
	copy(arm.Data[0x100:], bytesOf(b, "24004010 1d004000 e1e6e6e6e6c81099 e4000000"))
	for _, x := range []struct {
		name string
		a    *Arch
		q    PEQuery
	}{
		{"amd64/call", AMD64, PEQuery{m, m.At, fn, PC{m.At + Addr(pcs[0]), false}}},
		{"amd64/body", AMD64, PEQuery{m, m.At, fn, PC{m.At + Addr(pcs[0]), true}}},
		{"amd64/epilogue", AMD64, PEQuery{m, m.At, fn, PC{m.At + Addr(pcs[1]), true}}},
		{"arm64/call", ARM64, PEQuery{arm, arm.At, PEFunction{0x200, 0, 0x100}, PC{arm.At + 0x220, false}}},
		{"arm64/body", ARM64, PEQuery{arm, arm.At, PEFunction{0x200, 0, 0x100}, PC{arm.At + 0x220, true}}},
	} {
		b.Run(x.name, func(b *testing.B) {
			var r Rule
			b.ReportAllocs()
			for b.Loop() {
				if res := x.a.PE.Rule(&x.q, &r); res.Status != PEOK {
					b.Fatal(res)
				}
			}
		})
	}
}

func BenchmarkLeave(b *testing.B) {
	x86 := flatAt(0x10000, bytesOf(b, "48 83 c4 20 5b 41 5e c3"))
	arm := flatAt(0x10000, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0xa8c27bfd), 0xd65f03c0))
	b.Run("amd64", func(b *testing.B) {
		var r Rule
		b.ReportAllocs()
		for b.Loop() {
			AMD64.Leave(x86, x86.At, &r)
		}
	})
	b.Run("arm64", func(b *testing.B) {
		var r Rule
		b.ReportAllocs()
		for b.Loop() {
			ARM64.Leave(arm, arm.At, &r)
		}
	})
}
