package profiler_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

// A profiler's callback, over a dump: it prints each frame that the runtime
// would report, and goes on.
func Example() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	snapshotter, err := profiler.New(managed.Open(process, nil))
	if err != nil {
		log.Fatal(err)
	}
	hr := snapshotter.Do(profiler.Request{TID: 3685}, func(c profiler.Call) profiler.HRESULT {
		if m, err := snapshotter.Method(c.Function); err == nil {
			fmt.Println(m.Name)
		} else {
			fmt.Println("native frames")
		}
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
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	snapshotter, err := profiler.New(managed.Open(process, nil))
	if err != nil {
		log.Fatal(err)
	}
	calls := 0
	hr := snapshotter.Do(profiler.Request{TID: 3685}, func(profiler.Call) profiler.HRESULT {
		if calls++; calls == 2 {
			return profiler.S_FALSE
		}
		return profiler.S_OK
	})
	fmt.Println(calls, "callbacks,", hr.Name())
	// Output: 2 callbacks, CORPROF_E_STACKSNAPSHOT_ABORTED
}

// The seed of a thread that a profiler has stopped in native code: the registers of
// its topmost managed frame, as the CONTEXT to hand to DoStackSnapshot.
func ExampleSnapshotter_FindSeed() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	snapshotter, err := profiler.New(managed.Open(process, nil))
	if err != nil {
		log.Fatal(err)
	}
	for i := range process.Threads {
		found := snapshotter.FindSeed(&process.Threads[i])
		if found.Seed == nil || process.Threads[i].ID != 3685 {
			continue
		}
		fmt.Println(len(found.Native), "native frames, then", found.Seed.PC)
		fmt.Println("the runtime needs it:", found.Needed)
		v, err := snapshotter.CheckSeed(&process.Threads[i], &found, profiler.Self, found.Seed.Context)
		fmt.Println(v.Text, err)
	}
	// Output:
	// 3 native frames, then 0x7f822549c201
	// the runtime needs it: false
	// it is the right seed <nil>
}

// Guidelines of asynchronous walks that the process breaks: none, in this one.
func ExampleHazards() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	broken, err := profiler.Hazards(stacks.Of(managed.Open(process, nil), nil))
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range broken {
		fmt.Printf("%s: %s\n", h.Rule, h.Text)
	}
	fmt.Println(len(broken), "guidelines broken")
	// Output: 0 guidelines broken
}
