package managed_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// A thread is walked frame by frame, and the registers of its topmost managed frame
// are printed: those that its callees have saved or left alone. All others are not
// known any more.
func ExampleWalker_Regs() {
	process, err := loader.Open("../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	w := managed.Open(process, nil).NewWalker()
	for ok := w.Start(&process.Threads[0]); ok; ok = w.Next() {
		if w.Frame().Kind != managed.Managed {
			continue
		}
		for r := arch.Reg(0); r < arch.MaxRegs; r++ {
			if v, known := w.Regs().Get(r); known {
				fmt.Printf("%-3s %#x\n", process.Arch.RegName(r), v)
			}
		}
		break
	}
	// Output:
	// rbx 0x7ffd3e9da4a0
	// rbp 0x7ffd3e9da310
	// rsp 0x7ffd3e9da190
	// r12 0x0
	// r13 0x0
	// r14 0x7ffd3e9da608
	// r15 0x7ffd3e9da690
	// rip 0x7f822549205b
}
