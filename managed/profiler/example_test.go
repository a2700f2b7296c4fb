package profiler_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/profiler"
)

// A profiler's callback, over a dump: it prints each frame that the runtime
// would report, and goes on.
func ExampleSnapshotter_Do() {
	p, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	s := managed.Open(p, nil)
	rt := s.Runtimes[0].(*clr.Runtime)
	n, err := profiler.New(s)
	if err != nil {
		log.Fatal(err)
	}

	hr := n.Do(profiler.Request{TID: 3685}, func(c profiler.Call) profiler.HRESULT {
		if c.Function == 0 {
			fmt.Println("native frames")
			return profiler.S_OK
		}
		m, _ := rt.MethodAt(arch.Addr(c.Function))
		fmt.Println(m.Name)
		return profiler.S_OK
	})
	fmt.Println(hr.Name())
	// Output:
	// Program.Park
	// Program+<>c.<Define>b__9_71
	// native frames
	// Program+<>c.<Define>b__9_2
	// Program+<>c__DisplayClass8_0.<Main>b__0
	// System.Threading.Thread.StartCallback
	// native frames
	// S_OK
}

// A callback that has seen enough: any answer but S_OK ends the walk.
func ExampleSnapshotter_Do_abort() {
	p, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	s := managed.Open(p, nil)
	n, err := profiler.New(s)
	if err != nil {
		log.Fatal(err)
	}

	calls := 0
	hr := n.Do(profiler.Request{TID: 3685}, func(profiler.Call) profiler.HRESULT {
		if calls++; calls == 2 {
			return profiler.S_FALSE
		}
		return profiler.S_OK
	})
	fmt.Println(calls, "callbacks,", hr.Name())
	// Output: 2 callbacks, CORPROF_E_STACKSNAPSHOT_ABORTED
}
