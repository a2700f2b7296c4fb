package arch

import (
	"testing"

	"github.com/seamwalk/seam/internal/memtest"
)

// The call by which NativeAOT's runtime has an exception dispatched is known by the
// instructions around it, and by nothing less.
func TestThrow(t *testing.T) {
	for _, c := range []struct {
		abi  *ABI
		code string
		ret  Addr // of the call
		off  int
	}{
		// 9.0.20, linux-x64.
		{amd64Linux, "\x48\x8d\x94\x24\xa0\x01\x00\x00\x48\x89\x56\x08\xe8\x3f\x17\x05\x00\xcc", 17, 0x1a0},
		// add x2, sp, #0x330; str x2, [x1, #8]; bl; brk #0xf000.
		{arm64Linux, "\xe2\xc3\x0c\x91\x22\x04\x00\xf9\x10\x00\x00\x94\x00\x00\x3e\xd4", 12, 0x330},
	} {
		const base = 0x1000
		at := func(code string) (int, bool) {
			mem := memtest.Piece[Addr]{At: base, Data: []byte(code)}
			return c.abi.Throw.At(mem, base+c.ret)
		}
		if off, ok := at(c.code); !ok || off != c.off {
			t.Errorf("%s: %#x %v, want %#x", c.abi.Arch.Name, off, ok, c.off)
		}
		if _, ok := at(c.code[:len(c.code)-1]); ok {
			t.Errorf("%s: known without its last byte", c.abi.Arch.Name)
		}
		for _, i := range []int{0, int(c.ret) - 9, len(c.code) - 1} {
			b := []byte(c.code)
			b[i] ^= 0x10
			if off, ok := at(string(b)); ok {
				t.Errorf("%s: known as %#x with byte %d changed", c.abi.Arch.Name, off, i)
			}
		}
		// Every register lies within the context, and the pc and the stack pointer do.
		var regs RegSet
		for _, f := range c.abi.Throw.Context.Fields {
			regs |= Regset(f.Reg)
			if f.Off < 0 || f.Off+8 > c.abi.Throw.Context.Size {
				t.Errorf("%s: register %d at %d", c.abi.Arch.Name, f.Reg, f.Off)
			}
		}
		for reg := range Reg(MaxRegs) {
			if (c.abi.CalleeSaved.Has(reg) || reg == c.abi.Arch.PC || reg == c.abi.Arch.SP) && !regs.Has(reg) {
				t.Errorf("%s: register %d is not in the context", c.abi.Arch.Name, reg)
			}
		}
	}
}
