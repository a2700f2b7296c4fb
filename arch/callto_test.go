package arch

import (
	"encoding/binary"
	"testing"
)

// CallTo works out the target of every form of a call.
func TestCallTo(t *testing.T) {
	const ret, to = 0x1010, 0x123456789a
	word := binary.LittleEndian.AppendUint64(nil, to)
	for _, c := range []struct {
		a    *Arch
		name string
		code string // ends at ret
		set  map[Reg]uint64
		at   Addr // where memory has to
		want bool
	}{
		{AMD64, "call rax", "\xff\xd0", map[Reg]uint64{amd64RAX: to}, 0, true},
		{AMD64, "call rax, which is not known", "\xff\xd0", nil, 0, false},
		{AMD64, "call rax, which is another", "\xff\xd0", map[Reg]uint64{amd64RAX: to + 1}, 0, false},
		{AMD64, "call r13", "\x41\xff\xd5", map[Reg]uint64{amd64R13: to}, 0, true},
		{AMD64, "call [rbx]", "\xff\x13", map[Reg]uint64{amd64RBX: 0x8000}, 0x8000, true},
		{AMD64, "call [rbx+8]", "\xff\x53\x08", map[Reg]uint64{amd64RBX: 0x8000}, 0x8008, true},
		{AMD64, "call [r12-16]", "\x41\xff\x54\x24\xf0", map[Reg]uint64{amd64R12: 0x8010}, 0x8000, true},
		{AMD64, "call [rdx+0x12345]", "\xff\x92\x45\x23\x01\x00", map[Reg]uint64{amd64RDX: 0x8000}, 0x1a345, true},
		{AMD64, "call [rip+0x7000]", "\xff\x15\x00\x70\x00\x00", nil, 0x8010, true},
		{AMD64, "call [rip+0x7000], another", "\xff\x15\x00\x70\x00\x00", nil, 0x8018, false},
		{AMD64, "call [rax+rcx*8+0x20]", "\xff\x54\xc8\x20", map[Reg]uint64{amd64RAX: 0x8000, amd64RCX: 3}, 0x8038, true},
		{AMD64, "call [r9*8+0x8000]", "\x42\xff\x14\xcd\x00\x80\x00\x00", map[Reg]uint64{amd64R9: 2}, 0x8010, true},
		{AMD64, "call [rsp+8]", "\xff\x54\x24\x08", map[Reg]uint64{amd64RSP: 0x8000}, 0x8010, true},
		{AMD64, "call [rbp-8]", "\xff\x55\xf8", map[Reg]uint64{amd64RBP: 0x8008}, 0x8000, true},
		{AMD64, "jmp rax", "\xff\xe0", map[Reg]uint64{amd64RAX: to}, 0, false},
		{ARM64, "blr x3", "\x60\x00\x3f\xd6", map[Reg]uint64{3: to}, 0, true},
		{ARM64, "blr x3, which is another", "\x60\x00\x3f\xd6", map[Reg]uint64{3: to + 4}, 0, false},
		{ARM64, "blr x30", "\xc0\x03\x3f\xd6", map[Reg]uint64{30: to}, 0, false},
		{ARM64, "blraa x8, x9, signed", "\x09\x09\x3f\xd7", map[Reg]uint64{8: to | 0xabcd<<48}, 0, true},
		{ARM64, "br x3", "\x60\x00\x1f\xd6", map[Reg]uint64{3: to}, 0, false},
	} {
		m := flatAt(0, make([]byte, 0x20000))
		copy(m.Data[ret-len(c.code):], c.code)
		copy(m.Data[c.at:], word)
		var r Regs
		for reg, v := range c.set {
			r.Set(reg, v)
		}
		if got := c.a.CallTo(m, &r, ret, to); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// By way of an entry of a PLT at 0x2000 whose slot is 0x8000, and of a
	// function that ends with a jump through r11.
	for _, code := range []string{"\xf3\x0f\x1e\xfa\xf2\xff\x25\xf9\x5f\x00\x00", "\x53\x90\x5b\x41\xff\xe3"} {
		m := flatAt(0, make([]byte, 0x20000))
		copy(m.Data[ret-5:], "\xe8\xf0\x0f\x00\x00")
		copy(m.Data[0x2000:], code)
		copy(m.Data[0x8004:], word)
		var r Regs
		r.Set(amd64R11, to)
		if !AMD64.CallTo(m, &r, ret, to) || AMD64.CallTo(m, &r, ret, to+1) {
			t.Errorf("a call of code that jumps: % x", code)
		}
	}
	direct := map[*Arch]string{AMD64: "\xe8\xf0\xff\xff\xff", ARM64: "\xfd\xff\xff\x97"}
	for a, code := range direct {
		m := flatAt(0, make([]byte, ret))
		copy(m.Data[ret-len(code):], code)
		if want := Addr(0x1000); !a.CallTo(m, new(Regs), ret, want) || a.CallTo(m, new(Regs), ret, want+4) {
			t.Errorf("%s: a direct call", a.Name)
		}
	}
}

// FuzzCallTo: any bytes may stand before what is taken for a return address.
func FuzzCallTo(f *testing.F) {
	f.Add([]byte("\xff\x54\xc8\x20"), []byte("\xff\x25\xf9\x5f\x00\x00"))
	f.Add([]byte("\xe8\xfb\xff\xff\xff"), []byte("\x41\xff\xe3"))
	f.Add([]byte("\x60\x00\x3f\xd6"), []byte{})
	f.Fuzz(func(t *testing.T, call, then []byte) {
		if len(call) > 64 || len(then) > 1024 {
			return
		}
		m := flatAt(0x1000, append(append(make([]byte, 16), call...), then...))
		var r Regs
		for reg := range Reg(MaxRegs) {
			r.Set(reg, 0x1000+uint64(reg))
		}
		for _, a := range All() {
			for _, to := range []Addr{0, 0x1000, 0x1010} {
				a.CallTo(m, &r, 0x1010+Addr(len(call)), to)
			}
		}
	})
}
