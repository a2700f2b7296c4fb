// Package profiler makes the calls of ICorProfilerInfo2::DoStackSnapshot over a
// dump.
//
// A [Snapshotter] calls back for exactly the frames that the runtime's own walk
// reports, hides those that it hides, and returns the HRESULT that it returns; Why
// names the row of docs/contract.md that decided. It also finds and checks seeds,
// which are the contexts that a profiler hands to the runtime to begin a walk at.
// [Hazards] looks for threads of a dump in which an asynchronous walk has gone
// wrong: profilers that wait for what the thread that they stopped holds.
//
//	session := managed.Open(process, nil)
//	snapshotter, err := profiler.New(session)
//	hr := snapshotter.Do(profiler.Request{TID: 4711}, func(c profiler.Call) profiler.HRESULT { ... })
//	broken, err := profiler.Hazards(stacks.Of(session, nil))
//
// A walk here shares the look-up of code and the unwind rules with package
// managed, and nothing else.
package profiler
