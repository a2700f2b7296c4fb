package arch_test

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
)

// stack is a piece of memory at an address.
type stack struct {
	at arch.Addr
	b  []byte
}

func (m stack) View(a arch.Addr, n int) []byte {
	if off := uint64(a - m.at); off <= uint64(len(m.b)) && uint64(n) <= uint64(len(m.b))-off {
		return m.b[off:][:n]
	}
	return nil
}

func (m stack) Word(a arch.Addr) (uint64, bool) {
	if b := m.View(a, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

// A thread was stopped at `pop rbx` of an epilogue: how does it go on?
func Example() {
	code := stack{0x401000, []byte{
		0x48, 0x83, 0xc4, 0x20, // add rsp, 32
		0x5b, // pop rbx
		0xc3, // ret
	}}
	var r arch.Rule
	if !arch.AMD64.Leave(code, 0x401004, &r) {
		return
	}
	fmt.Printf("CFA = %s%+d\n", arch.AMD64.RegName(r.Base), r.Offset)
	for _, s := range r.Saved[:r.N] {
		fmt.Printf("%s at CFA%+d\n", arch.AMD64.RegName(s.Reg), s.Off)
	}
	// Output:
	// CFA = rsp+16
	// rip at CFA-8
	// rbx at CFA-16
}
