package unwind_test

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// words is a memory of a few words, as a test or another source of stacks
// than a dump may have.
type words map[arch.Addr]uint64

func (m words) Word(a arch.Addr) (uint64, bool)   { v, ok := m[a]; return v, ok }
func (m words) View(a arch.Addr, size int) []byte { return nil }

func Example() {
	a := arch.AMD64
	// Two frames that keep a frame pointer: the saved one, the return address.
	m := words{0x7000: 0x7020, 0x7008: 0x401234, 0x7020: 0, 0x7028: 0}
	var regs arch.Regs
	regs.Set(a.PC, 0x401100)
	regs.Set(a.SP, 0x6ff0)
	regs.Set(a.FP, 0x7000)

	// No image describes this code, so the frame pointer must be asked for.
	u := unwind.New(a.On(arch.Linux), m, nil, &unwind.Options{Guess: true})
	frames, stop := u.NewWalker().Walk(nil, &regs)
	for _, f := range frames {
		fmt.Println(f.PC.Addr, f.By)
	}
	fmt.Println(stop.Reason, stop.Reason.Complete())
	// Output:
	// 0x401100 context
	// 0x401234 frame_pointer
	// zero_return true
}
