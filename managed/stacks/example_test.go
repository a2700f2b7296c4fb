package stacks_test

import (
	"fmt"
	"log"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
	"github.com/seamwalk/seam/unwind"
)

// All stacks of a dump are walked, and one of them is printed: native and managed
// frames in one list, each with its name.
func Example() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	named := stacks.Of(managed.Open(process, nil), nil)
	for thread, err := range named.All() {
		if err != nil {
			log.Fatal(err)
		}
		if thread.TID != 3685 {
			continue
		}
		fmt.Println("Thread", thread)
		for i, f := range thread.Frames {
			fmt.Printf("%2d  %-7s  %-26s  %v\n", i, f.Kind, f.Module, f)
		}
		fmt.Println(thread.Stop)
	}
	counts := named.Summary().Counts
	fmt.Println(counts.Whole, "of", counts.Threads, "stacks are whole")
	// Output:
	// Thread 3685, managed 5, preemptive
	//  0  native   libc.so.6                   __futex_abstimed_wait_common+0xc6
	//  1  native   libc.so.6                   pthread_cond_wait+0x1e8
	//  2  native   librecorder.so              RecorderPark+0xa3
	//  3  managed  scenarios.dll               dynamicClass.IL_STUB_PInvoke(string)+0xf1
	//  4  managed  scenarios.dll               Program.Park()+0x55
	//  5  managed  scenarios.dll               Program.Define.lambda_71(int)+0x17
	//  6  managed  scenarios.dll               dynamicClass.IL_STUB_ReversePInvoke(int)+0x3e
	//  7  native   librecorder.so              NativeDeep+0x17
	//  8  native   librecorder.so              NativeDeep+0x25
	//  9  native   librecorder.so              NativeDeep+0x25
	// 10  native   librecorder.so              NativeDeep+0x25
	// 11  managed  scenarios.dll               dynamicClass.IL_STUB_PInvoke(Callback, int, int)+0xa0
	// 12  managed  scenarios.dll               Program.Define.lambda_2()+0xc8
	// 13  managed  scenarios.dll               Program.Main.lambda_0()+0x7c
	// 14  managed  System.Private.CoreLib.dll  System.Threading.Thread.StartCallback()+0x86
	// 15  native   libcoreclr.so               ? [0x5fb3cc]
	// 16  native   libcoreclr.so               ? [0x459305]
	// 17  native   libcoreclr.so               ? [0x46fb3b]
	// 18  native   libcoreclr.so               ? [0x4250dc]
	// 19  native   libcoreclr.so               ? [0x46dd71]
	// 20  native   libcoreclr.so               ? [0x63cf51]
	// 21  native   libc.so.6                   start_thread+0x305
	// 22  native   libc.so.6                   clone3+0x2c
	// end: the unwind information marks this frame as outermost
	// 18 of 18 stacks are whole
}

// Threads of a busy process that stand in equal stacks.
func ExampleStacks_Groups() {
	process, err := loader.Open("../../testdata/dumps/net10-busy-a/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	groups, err := stacks.Of(managed.Open(process, nil), nil).Groups()
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		if len(g.Threads) > 1 {
			fmt.Println(len(g.Threads), "threads, with", len(g.Stack.Frames), "frames:", g.Threads)
			for _, f := range g.Stack.Frames[:4] {
				fmt.Println("   ", f)
			}
		}
	}
	// Output:
	// 2 threads, with 15 frames: [10670 10671]
	//     Calls.I2(long, long, long, long)+0x75
	//     Calls.I1(long, long, long, long)+0x21
	//     Calls.Ints(int)+0x35
	//     Worker.Inner(System.Action<int>, int)+0xb
	// 2 threads, with 14 frames: [10674 10675]
	//     Calls.K5(int)+0x86
	//     Calls.Stack(int)+0x45
	//     Worker.Inner(System.Action<int>, int)+0xb
	//     Worker.Outer(System.Action<int>)+0x41
	// 2 threads, with 16 frames: [10676 10677]
	//     Calls.T5()
	//     Calls.T3(int, int)+0x14
	//     Calls.T0(int)+0x2f
	//     Calls.Tiny(int)+0x23
	// 3 threads, with 14 frames: [10704 10709 10710]
	//     __sched_yield+0x7
	//     ? [0x63c6c9]
	//     ? [0x46f7cb]
	//     System.Threading.LowLevelLifoSemaphore.Wait(int, bool)+0x124
	// 2 threads, with 20 frames: [10705 10707]
	//     __futex_abstimed_wait_common+0xc6
	//     pthread_cond_timedwait+0x21c
	//     ? [0x6315b5]
	//     ? [0x63123f]
}

// The registers of a thread's frames. A register that no unwind rule has saved is
// not known in the callers, and not printed.
func ExampleStacks_Place() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	session := managed.Open(process, nil)
	named, cpu := stacks.Of(session, nil), process.Arch
	thread := named.Threads()[0]
	err = process.Guard(func() { // the file may be cut while it is read
		w := session.NewWalker()
		for ok := w.Start(thread); ok; ok = w.Next() {
			fmt.Printf("%v", named.Place(w.Frame()))
			for _, r := range []arch.Reg{cpu.SP, cpu.FP} {
				if v, known := w.Regs().Get(r); known {
					fmt.Printf("  %s=%#x", cpu.RegName(r), v)
				}
			}
			fmt.Println()
		}
		fmt.Println(w.Stop().Reason)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// __futex_abstimed_wait_common+0xc6  rsp=0x7ffd3e9da0b0  rbp=0xe6d
	// __pthread_clockjoin_ex+0x133  rsp=0x7ffd3e9da0f0  rbp=0x0
	// RecorderGo+0x3e  rsp=0x7ffd3e9da170  rbp=0x7ffd3e9da180
	// Program.Main(string[])+0x7fb  rsp=0x7ffd3e9da190  rbp=0x7ffd3e9da310
	// ? [0x5fb3cc]  rsp=0x7ffd3e9da320  rbp=0x7ffd3e9da330
	// ? [0x459a31]  rsp=0x7ffd3e9da340  rbp=0x7ffd3e9da510
	// ? [0x33fee5]  rsp=0x7ffd3e9da520  rbp=0x7ffd3e9da720
	// ? [0x34032c]  rsp=0x7ffd3e9da730  rbp=0x7ffd3e9da9c0
	// ? [0x368cde]  rsp=0x7ffd3e9da9d0  rbp=0x7ffd3e9daac0
	// coreclr_execute_assembly+0xd6  rsp=0x7ffd3e9daad0  rbp=0x7ffd3e9dab30
	// ? [0x2f01c]  rsp=0x7ffd3e9dab40  rbp=0x7ffd3e9dac20
	// corehost_main+0x159  rsp=0x7ffd3e9dac30  rbp=0x7ffd3e9dace0
	// ? [0x213bb]  rsp=0x7ffd3e9dacf0  rbp=0x7ffd3e9dae00
	// ? [0x1ff13]  rsp=0x7ffd3e9dae10  rbp=0x7ffd3e9daf30
	// hostfxr_main_startupinfo+0x107  rsp=0x7ffd3e9daf40  rbp=0x7ffd3e9db000
	// ? [0x82db]  rsp=0x7ffd3e9db010  rbp=0x7ffd3e9db160
	// ? [0x85ff]  rsp=0x7ffd3e9db170  rbp=0x7ffd3e9db1c0
	// __libc_start_call_main+0x7a  rsp=0x7ffd3e9db1d0  rbp=0x9
	// __libc_start_main+0x85  rsp=0x7ffd3e9db270  rbp=0x9
	// ? [0x71ba]  rsp=0x7ffd3e9db2c0  rbp=0x0
	// end_of_stack
}

// The callbacks of a replayed DoStackSnapshot, with names. Between two callbacks
// for methods a callback of function 0 stands for a run of native frames.
func ExampleStacks_Describe() {
	process, err := loader.Open("../../testdata/dumps/net10-hello/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	session := managed.Open(process, nil)
	snapshotter, err := profiler.New(session)
	if err != nil {
		log.Fatal(err)
	}
	var frames []managed.Frame
	hr := snapshotter.Do(profiler.Request{TID: 3685}, func(c profiler.Call) profiler.HRESULT {
		f := managed.Frame{PC: arch.PC{Addr: c.IP}}
		if c.Function != 0 {
			f.Kind = managed.Managed
			f.Code, f.Runtime = session.Lookup(c.IP)
		}
		frames = append(frames, f)
		return profiler.S_OK
	})
	named := stacks.Of(session, nil)
	for _, t := range named.Threads() {
		if t.ID == 3685 {
			for _, f := range named.Describe(t, frames, unwind.Stop{}).Frames {
				fmt.Println(f.Kind, f)
			}
		}
	}
	fmt.Println(hr.Name())
	// Output:
	// managed Program.Park()+0x55
	// managed Program.Define.lambda_71(int)+0x17
	// native NativeDeep+0x17
	// managed Program.Define.lambda_2()+0xc8
	// managed Program.Main.lambda_0()+0x7c
	// managed System.Threading.Thread.StartCallback()+0x86
	// native ? [0x5fb3cc]
	// S_OK
}

// What ended a process that crashed, and the stack trace of the exception that
// nobody handled.
func ExampleStacks_Cause() {
	process, err := loader.Open("../../testdata/dumps/net10-crash-unhandled/core.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	named := stacks.Of(managed.Open(process, nil), nil)
	fmt.Println(named.Cause())
	thread := named.Thread(named.Threads()[0])
	for _, f := range thread.Exception.Frames {
		fmt.Println("  at", f.Function)
	}
	// Output:
	// unhandled System.ApplicationException: unhandled scenario, in thread 19702
	//   at Crash.Run.lambda_0()
	//   at Crash.Level(int, System.Action)
	//   at Crash.Level(int, System.Action)
	//   at Crash.Level(int, System.Action)
	//   at Crash.Level(int, System.Action)
	//   at Crash.Run(string)
	//   at Program.Main(string[])
}
