package clr

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

type threadLayout struct {
	StoreFirst int `c:"ThreadStore.FirstThreadLink"`
	StoreCount int `c:"ThreadStore.ThreadCount"`
	ID         int `c:"Thread.Id"`
	OSID       int `c:"Thread.OSId"`
	State      int `c:"Thread.State"`
	PGC        int `c:"Thread.PreemptiveGCDisabled"`
	Frame      int `c:"Thread.Frame"`
	ExInfo     int `c:"Thread.ExceptionTracker"`
	Link       int `c:"Thread.LinkNext"`

	StackBase    int `c:"Thread.CachedStackBase"`
	StackLimit   int `c:"Thread.CachedStackLimit"`
	HijackReturn int `c:"Thread.m_pvHJRetAddr"`
	HijackSlot   int `c:"Thread.m_ppvHJRetAddrPtr"`
	NoSuspend    int `c:"Thread.m_dwForbidSuspendThread"`
}

// threadHijacked is TS_Hijacked of Thread::m_State: the two hijack words mean
// something while it is set (src/coreclr/vm/threads.h).
const threadHijacked = 0x80

// Bits of Thread::m_State (src/coreclr/vm/threads.h): TS_Dead of a thread that
// ends, TS_Detached of one whose OS thread has left the runtime for good. The
// object stays in the list until the finalizer has seen it, with an id that the
// OS may have given to another thread since.
const (
	threadDead     = 0x800
	threadDetached = 0x80000000
)

// maxThreads bounds the thread list; a process has at most a few ten thousand.
const maxThreads = 1 << 20

// Threads returns the managed threads of the runtime's ThreadStore, and a
// warning where the list is cut or broken.
func (r *Runtime) Threads() (ts []code.Thread, warns []loader.Warning) {
	return r.threadList(maxThreads)
}

// threadList returns the first threads of the list, at most that many.
func (r *Runtime) threadList(most int) (ts []code.Thread, warns []loader.Warning) {
	l := &r.threadLayout
	broken := func(format string, args ...any) ([]code.Thread, []loader.Warning) {
		return ts, append(warns, loader.Warning{Code: "threads_cut", Off: -1,
			Text: "the list of managed threads: " + fmt.Sprintf(format, args...)})
	}
	at, ok := r.data.pointer("ThreadStore")
	if !ok {
		return broken("the contract does not say where it is")
	}
	store, ok := r.word(at)
	if !ok {
		return broken("the pointer to it, at %v, is missing from the dump", at)
	}
	if store == 0 {
		return nil, nil // the runtime has not started
	}
	count, ok := r.u32(arch.Addr(store) + arch.Addr(l.StoreCount))
	if !ok || count > maxThreads {
		return broken("its length, at %v, is missing or absurd", arch.Addr(store)+arch.Addr(l.StoreCount))
	}
	next := arch.Addr(store) + arch.Addr(l.StoreFirst)
	for n := uint32(0); ; n++ {
		link, ok := r.word(next)
		if !ok {
			return broken("the link at %v is missing from the dump", next)
		}
		if link == 0 {
			return ts, warns
		}
		if n == uint32(most) {
			return ts, warns
		}
		// More links than threads: the list is a cycle.
		if n == count {
			return broken("it goes on at %v after all %d threads", next, count)
		}
		next = arch.Addr(link)
		t, ok := r.thread(next - arch.Addr(l.Link))
		if !ok {
			if len(warns) == 0 { // its link may still lead on
				_, warns = broken("the Thread at %v is not whole in the dump", t.Addr)
			}
			continue
		}
		ts = append(ts, t)
	}
}

// thread reads the Thread object at a.
func (r *Runtime) thread(a arch.Addr) (code.Thread, bool) {
	l := &r.threadLayout
	t := code.Thread{Addr: a}
	id, ok1 := r.u32(field(a, l.ID))
	osid, ok2 := r.word(field(a, l.OSID))
	state, ok3 := r.u32(field(a, l.State))
	pgc, ok4 := r.u32(field(a, l.PGC))
	frame, ok5 := r.word(field(a, l.Frame))
	exinfo, ok6 := r.word(field(a, l.ExInfo))
	t.ID, t.OSID, t.State, t.Cooperative = id, osid, state, pgc != 0
	t.Dead, t.Detached = state&threadDead != 0, state&threadDetached != 0
	t.Frame, t.Exception = arch.Addr(frame), arch.Addr(exinfo)

	base, _ := r.word(field(a, l.StackBase))
	limit, _ := r.word(field(a, l.StackLimit))
	// A base that is no page's end is another field: this build has another layout.
	if base != 0 && base%pageSize == 0 && limit < base {
		t.StackBase, t.StackLimit = arch.Addr(base), arch.Addr(limit)
	}
	if t.State&threadHijacked != 0 {
		ret, ok1 := r.word(field(a, l.HijackReturn))
		slot, ok2 := r.word(field(a, l.HijackSlot))
		if s := arch.Addr(slot); ok1 && ok2 && (t.StackBase == 0 || s >= t.StackLimit && s < t.StackBase) {
			t.HijackSlot, t.HijackReturn = s, arch.Addr(ret)
		}
		if !ok1 {
			t.HijackLost = field(a, l.HijackReturn)
		} else if !ok2 {
			t.HijackLost = field(a, l.HijackSlot)
		}
	}
	return t, ok1 && ok2 && ok3 && ok4 && ok5 && ok6
}

const pageSize = 4096
