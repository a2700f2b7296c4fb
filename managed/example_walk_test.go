package managed_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// Every thread of a dump is walked, native and managed frames in one stack, and
// the managed ones of one thread are named.
func Example() {
	p, err := loader.Open("../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	s := managed.Open(p, nil)
	rt := s.Runtimes[0].Info()
	fmt.Println(rt.Kind, rt.Version, "in", rt.Image.ID.Name)

	w := s.NewWalker()
	var frames []managed.Frame
	whole := 0
	for i := range p.Threads {
		t := &p.Threads[i]
		var stop unwind.Stop
		frames, stop = w.Walk(frames[:0], t)
		if stop.Reason.Complete() {
			whole++
		}
		if t.ID != 3687 {
			continue
		}
		for n, f := range frames {
			if f.Kind == managed.Managed {
				m, _ := f.Runtime.Describe(&f.Code)
				fmt.Println(n, f.PC.Addr, m.Name)
			}
		}
	}
	fmt.Println(whole, "of", len(p.Threads), "stacks are whole")
	// Output:
	// coreclr 10.0.12 in libcoreclr.so
	// 3 0x7f822549c201 dynamicClass.IL_STUB_PInvoke
	// 4 0x7f8225497b75 Program.Park
	// 5 0x7f82254981ff Program.FinallyParks
	// 11 0x7f8225497fc3 Program.Throw
	// 12 0x7f8225497f79 Program.Throw
	// 13 0x7f8225497f79 Program.Throw
	// 14 0x7f82254981ef Program.FinallyParks
	// 15 0x7f822549819a Program+<>c.<Define>b__9_11
	// 16 0x7f8225497acc Program+<>c__DisplayClass8_0.<Main>b__0
	// 17 0x7f82246a9756 System.Threading.Thread.StartCallback
	// 18 of 18 stacks are whole
}
