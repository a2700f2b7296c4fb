package managed_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// A runtime of the caller's own: a table of ranges and names gives names to an
// executable that has no symbols. The stack is walked step by step, with the
// registers of each frame.
func ExampleOptions_runtimes() {
	p, err := loader.Open("../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	host := table{
		{arch.Span{Lo: 0x5610aa5501c0, Hi: 0x5610aa5504f0}, "the host, run"},
		{arch.Span{Lo: 0x5610aa5505b0, Hi: 0x5610aa550610}, "the host, main"},
	}
	s := managed.Open(p, &managed.Options{Runtimes: tables(&host)})
	for _, rt := range s.Runtimes {
		fmt.Println("runtime:", rt.Info().Kind)
	}

	w := s.NewWalker()
	for ok := w.Start(&p.Threads[0]); ok; ok = w.Next() {
		f, regs := w.Frame(), w.Regs()
		if f.Kind != managed.Managed {
			continue
		}
		m, _ := f.Runtime.Describe(&f.Code)
		fmt.Printf("%v %s: %s\n   ", f.PC.Addr, f.Runtime.Info().Kind, m.Name)
		for r, name := range p.Arch.Names {
			if v, known := regs.Get(arch.Reg(r)); known {
				fmt.Printf(" %s=%x", name, v)
			}
		}
		fmt.Println()
	}
	fmt.Println(w.Stop().Reason)
	// Output:
	// runtime: coreclr
	// runtime: table
	// 0x7f822549205b coreclr: Program.Main
	//     rbx=7ffd3e9da4a0 rbp=7ffd3e9da310 rsp=7ffd3e9da190 r12=0 r13=0 r14=7ffd3e9da608 r15=7ffd3e9da690 rip=7f822549205b
	// 0x5610aa5502db table: the host, run
	//     rbx=7ffd3e9db2d8 rbp=7ffd3e9db160 rsp=7ffd3e9db010 r12=7f82a3d05760 r13=7ffd3e9db120 r14=9 r15=7f82a3d07740 rip=5610aa5502db
	// 0x5610aa5505ff table: the host, main
	//     rbx=7ffd3e9db2d8 rbp=7ffd3e9db1c0 rsp=7ffd3e9db170 r12=0 r13=7ffd3e9db328 r14=9 r15=7f82a42be020 rip=5610aa5505ff
	// end_of_stack
}
