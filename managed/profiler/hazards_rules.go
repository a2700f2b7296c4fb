package profiler

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/stacks"
)

// A hazardRule is a guideline for asynchronous walks, of the documentation of
// ICorProfilerInfo2::DoStackSnapshot and of David Broman's "Profiler stack
// walking: basics and beyond".
type hazardRule struct {
	rule   string
	broken func(j *judge, walker, target *stoppedStack) (Hazard, bool)
	wayOut string
}

// hazardRules lists the guidelines in the order of asking. The first one that a walker
// breaks for a target is the one that is reported.
var hazardRules = []hazardRule{
	{"a target must be alive while it is walked", (*judge).deadTarget,
		"hold the thread back: wait in ThreadDestroyed until the walk of it is over, and stop no thread whose ThreadDestroyed has come"},
	{"a walker must not run managed code", (*judge).managedWalker,
		"walk from a native thread that never runs managed code: only such a thread is not suspended by the runtime"},
	{"a walker must not make the runtime wait for a thread that it has stopped", (*judge).suspendingWalker,
		"let the target go before SuspendRuntime is called, or walk under SuspendRuntime alone: it stops the threads itself"},
	{"a walker must have called the runtime once before it stops a thread", (*judge).firstCall,
		"make the first call on the walker's thread, to GetFunctionFromIP for one, before any thread is stopped: it sets up what the runtime keeps of the thread, under locks that a target may hold"},
	{"a walker must take no lock that the stopped target may hold", (*judge).sharedLock,
		"have ready what the walk needs before the target is stopped: buffers, and the unwind tables of all modules; allocate, load and look for tables after it runs again"},
}

// Bits of Thread::m_State (src/coreclr/vm/threads.h): TS_Dead, TS_Detached and
// TS_ReportDead.
const threadGone = 0x800 | 0x80000000 | 0x10000

// exitFunctions are what a thread runs in that is ending.
var exitFunctions = []string{"pthread_exit", "__pthread_exit", "__nptl_deallocate_tsd", "__nptl_free_tcb", "__call_tls_dtors", "__libc_thread_freeres", "_Unwind_ForcedUnwind"}

// deadTarget: nothing is certain of a thread that ends.
func (j *judge) deadTarget(w, t *stoppedStack) (h Hazard, ok bool) {
	why := ""
	if t.thread != nil && t.thread.State&threadGone != 0 {
		why = fmt.Sprintf("the runtime counts it as ended (state %#x)", t.thread.State)
	}
	for k := t.at; k < len(t.frames) && why == ""; k++ {
		if matches(t.function(k), exitFunctions) {
			why = "it was stopped in " + t.function(k)
		}
	}
	if why == "" {
		return h, false
	}
	h.Text = fmt.Sprintf("thread %d walks thread %d, which is ending: %s", w.tid, t.tid, why)
	j.held(&h, w, t, "what becomes of its walk")
	h.show(t, t.handler, t.at+2)
	return h, true
}

// managedWalker: a walker that runs managed code is a thread that the runtime
// suspends, and that waits for it to be done. A target stopped in cooperative
// mode keeps it from ever being done.
func (j *judge) managedWalker(w, t *stoppedStack) (h Hazard, ok bool) {
	first := firstManaged(w)
	if w.thread == nil || first < 0 {
		return h, false
	}
	if !w.waiting || first == 0 || w.images[first-1] != j.runtime || t.thread == nil || !t.thread.Cooperative {
		// It runs managed code and holds a target. What it waits for, if for
		// anything, is not the runtime.
		if in := inLibrary(w, t.library); in < 0 || in > first || j.dedicated(w, t) {
			return h, false
		}
		h.Text = fmt.Sprintf("thread %d, which runs managed code (%s), has stopped thread %d", w.tid, w.name(first), t.tid)
		j.held(&h, w, t, "")
		h.Waits = h.Waits[1:]
		h.show(w, 0, first+1)
		h.show(t, t.handler, t.at+1)
		return h, true
	}
	h.Text = fmt.Sprintf("thread %d has stopped thread %d in cooperative mode and runs managed code: in %s it waits for a suspension of the runtime to end, which waits for thread %d",
		w.tid, t.tid, w.name(first), t.tid)
	h.Lock = "gc"
	j.held(&h, w, t, "a safe point, to which it cannot come")
	if j.suspender != 0 {
		h.LockAt, h.Holder = j.suspensionAt, j.suspender
		h.Threads = []uint32{j.suspender}
		h.Waits = []Wait{{w.tid, j.suspender, "the end of the suspension, on its way back into managed code"},
			{j.suspender, t.tid, "a safe point: it is in cooperative mode"}, h.Waits[1]}
		// The suspender waits too, for the target; it is no victim.
		for i := len(h.Victims) - 1; i >= 0; i-- {
			if h.Victims[i] == j.suspender {
				h.Victims = append(h.Victims[:i], h.Victims[i+1:]...)
			}
		}
	}
	h.show(w, 0, first+1)
	h.show(t, t.handler, t.at+1)
	return h, true
}

// dedicated reports whether a thread of the library alone, other than w, may be
// the one that has stopped t: then w only happens to be in the library.
func (j *judge) dedicated(w, t *stoppedStack) bool {
	for i := range j.stacks {
		if o := &j.stacks[i]; o.tid != w.tid && o.tid != t.tid && firstManaged(o) < 0 && inLibrary(o, t.library) >= 0 {
			return true
		}
	}
	return false
}

// suspendingWalker: the walker is in the runtime, which waits for every thread
// to come to a safe point.
func (j *judge) suspendingWalker(w, t *stoppedStack) (h Hazard, ok bool) {
	in := inLibrary(w, t.library)
	if in <= 0 || !w.waiting || t.thread == nil || !t.thread.Cooperative || !j.between(w, in) {
		return h, false
	}
	h.Text = fmt.Sprintf("thread %d has stopped thread %d in cooperative mode and called the runtime in %s, which waits", w.tid, t.tid, w.name(in))
	h.Lock = "gc"
	j.held(&h, w, t, "a safe point, to which it cannot come")
	h.LockAt = j.suspensionAt
	h.show(w, 0, in+1)
	h.show(t, t.handler, t.at+1)
	return h, true
}

// firstCall: a thread without a Thread object is in the runtime and waits.
func (j *judge) firstCall(w, t *stoppedStack) (h Hazard, ok bool) {
	in := inLibrary(w, t.library)
	if w.thread != nil || in <= 0 || !w.waiting || !j.between(w, in) {
		return h, false
	}
	h.Text = fmt.Sprintf("thread %d, of which the runtime knows nothing yet, called it in %s and waits there while thread %d is stopped", w.tid, w.name(in), t.tid)
	h.Lock, h.LockAt = "runtime", w.word
	j.held(&h, w, t, "a lock of the runtime")
	h.show(w, 0, in+1)
	h.show(t, t.handler, t.at+1)
	return h, true
}

// between reports whether code of the runtime is younger than frame in of w,
// and none of the allocator or loader younger still.
func (j *judge) between(w *stoppedStack, in int) bool {
	for k := range in {
		if lockKindOf(w.function(k)) != "" {
			return false
		}
		if w.images[k] == j.runtime {
			return true
		}
	}
	return false
}

// A lockKind is a kind of lock, and the functions that take it.
type lockKind struct {
	name      string
	functions []string // a name that ends in * stands for all that begin so
}

// lockKinds are locks that both a walk and an ordinary thread take.
var lockKinds = []lockKind{
	{"malloc arena", []string{"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "operator new*", "operator delete*",
		"_Znw*", "_Zna*", "_Zdl*", "_Zda*", "_int_malloc", "_int_free*", "_int_realloc", "_int_memalign", "sysmalloc", "malloc_consolidate", "__libc_malloc", "__libc_free",
		"__libc_calloc", "__libc_realloc", "__libc_memalign", "arena_get*", "je_*", "tc_malloc", "tc_free", "mi_malloc", "mi_free", "RtlAllocateHeap", "RtlFreeHeap", "RtlReAllocateHeap", "HeapAlloc", "HeapFree"}},
	{"loader", []string{"dl_iterate_phdr", "dlopen*", "dlsym*", "dlclose*", "dladdr*", "dlinfo*", "_dl_*", "dl_open_worker*", "__tls_get_addr*", "LdrLoadDll", "LdrGetProcedureAddress", "LdrpLoadDll", "LdrLockLoaderLock", "LoadLibrary*"}},
	{"unwind tables", []string{"_Unwind_Find_FDE", "__register_frame*", "__deregister_frame*", "RtlLookupFunctionEntry", "RtlLookupFunctionTable", "RtlAddFunctionTable", "RtlDeleteFunctionTable", "RtlInstallFunctionTableCallback"}},
}

// lockKindOf returns the kind of lock that a function takes, or "".
func lockKindOf(function string) string {
	for i := range lockKinds {
		if matches(function, lockKinds[i].functions) {
			return lockKinds[i].name
		}
	}
	return ""
}

func matches(name string, list []string) bool {
	for _, f := range list {
		if begin, ok := strings.CutSuffix(f, "*"); name == f || ok && strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// sharedLock: the walker takes a lock of a kind that the target was stopped in.
func (j *judge) sharedLock(w, t *stoppedStack) (h Hazard, ok bool) {
	in := inLibrary(w, t.library)
	if in <= 0 {
		return h, false
	}
	at := 0
	for h.Lock == "" && at < in {
		h.Lock = lockKindOf(w.function(at))
		at++
	}
	held := j.holds(t, func(k int) bool { return lockKindOf(t.function(k)) == h.Lock })
	if h.Lock == "" && w.waiting && w.images[in-1] == j.runtime {
		h.Lock = "runtime"
		held = j.holds(t, func(k int) bool { return t.images[k] == j.runtime })
	}
	if w.waiting {
		h.LockAt, h.Holder = w.word, j.owner(w.word)
	}
	if h.Lock == "" && w.waiting && w.images[at-1] != nil && w.function(at-1) == "" {
		// Nobody can say what these functions are called. That both threads are
		// in one image, or that the word names the target, says enough.
		h.Lock = "unknown, of " + w.images[at-1].ID.Name
		held = j.holds(t, func(k int) bool { return t.images[k] == w.images[at-1] })
		if held != t.at && h.Holder != t.tid {
			held = -1
		}
	}
	if h.Lock == "" || held < 0 {
		return h, false
	}
	if h.Holder == 0 {
		h.Holder = t.tid // nobody else is inside
	}
	h.Text = fmt.Sprintf("thread %d is in %s, called by %s, while thread %d is stopped in %s", w.tid, w.name(at-1), w.name(in), t.tid, t.name(held))
	j.held(&h, w, t, "the "+h.Lock+" lock")
	if !w.waiting {
		h.Waits = h.Waits[1:]
	}
	h.show(w, 0, in+1)
	h.show(t, t.handler, held+1)
	return h, true
}

// holds returns the youngest frame of t, where it was stopped, for which is
// holds; -1 if there is none. What managed code called before does not count.
func (j *judge) holds(t *stoppedStack, is func(k int) bool) int {
	for k := t.at; k < len(t.frames) && t.frames[k].Kind == stacks.Native; k++ {
		if is(k) {
			return k
		}
	}
	return -1
}

// owner returns the thread that a pthread mutex at the word names as its owner
// (struct __pthread_mutex_s of glibc: __lock, __count, __owner), or 0.
func (j *judge) owner(word arch.Addr) uint32 {
	v, ok := j.mem.Word(word + 8)
	if !ok || word == 0 {
		return 0
	}
	for i := range j.stacks {
		if j.stacks[i].tid == uint32(v) {
			return uint32(v)
		}
	}
	return 0
}

// firstManaged returns the index of the youngest managed frame, -1 if there is none.
func firstManaged(st *stoppedStack) int {
	for k := range st.frames {
		if st.frames[k].Kind == stacks.Managed {
			return k
		}
	}
	return -1
}
