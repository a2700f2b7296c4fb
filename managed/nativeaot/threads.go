package nativeaot

import (
	"cmp"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// maxThreads bounds the list of threads.
const maxThreads = 1 << 20

// Threads returns the runtime's threads, and a warning where the list is cut or
// broken.
func (r *Runtime) Threads() (ts []code.Thread, warns []loader.Warning) {
	at := field(r.store, r.fields.List)
	seen := map[arch.Addr]bool{}
	for {
		v, ok := r.mem.Word(at)
		a := arch.Addr(v)
		if a == 0 && ok && r.store != 0 {
			return ts, warns
		}
		t := code.Thread{Addr: a, Frame: code.EndOfFrames}
		if ok && !seen[a] && len(ts) < maxThreads {
			ok = r.thread(&t)
		}
		if !ok || seen[a] {
			return ts, append(warns, loader.Warning{Code: "threads_cut", Off: -1,
				Text: fmt.Sprintf("the list of threads of the NativeAOT runtime in %s breaks off behind %d, at %v", r.Image.ID.Name, len(ts), cmp.Or(a, at))})
		}
		seen[a] = true
		ts = append(ts, t)
		at = field(a, r.fields.Next)
	}
}

// thread reads the Thread at t.Addr; not ok if the dump lacks a part of it. The
// header gives few of its fields. The others that are read are said where they
// are to lie beside those (src/coreclr/nativeaot/Runtime/thread.h of .NET 8 to
// 10), and believed if they agree with what they must be.
func (r *Runtime) thread(t *code.Thread) bool {
	id, ok1 := r.mem.Word(field(t.Addr, r.fields.OSID))
	exception, ok2 := r.mem.Word(field(t.Addr, r.fields.Exceptions))
	// m_pStackLow and m_pStackHigh stand before m_threadId.
	low, ok3 := r.mem.Word(field(t.Addr, r.fields.OSID-16))
	high, ok4 := r.mem.Word(field(t.Addr, r.fields.OSID-8))
	if !ok1 || !ok2 {
		return false
	}
	t.OSID, t.Exception = id, arch.Addr(exception)
	if ok3 && ok4 && low < high && high%pageSize == 0 && (exception == 0 || low <= exception && exception < high) {
		t.StackLimit, t.StackBase = arch.Addr(low), arch.Addr(high)
	}
	// m_pTransitionFrame, which is null while managed code runs, is three pointers
	// before m_pNext: the deferred and the cached ones stand between. It lies on the
	// thread's stack, if it is not one of two marks.
	frame, ok := r.mem.Word(field(t.Addr, r.fields.Next-24))
	t.Cooperative = ok && frame == 0
	if t.StackBase != 0 {
		r.hijack(t)
	}
	return true
}

// pageSize is the size of the pages that stacks are made of.
const pageSize = 1 << 12

// hijack finds the return address of t that the runtime has replaced, if there is
// one: m_ppvHijackedReturnAddressLocation, which lies on the stack then, and
// m_pvHijackedReturnAddress, a pc in the program. They stand before
// m_pExInfoStackHead, in .NET 8 and 9 with flags between.
func (r *Runtime) hijack(t *code.Thread) {
	for _, before := range []int{24, 16} {
		slot, ok1 := r.mem.Word(field(t.Addr, r.fields.Exceptions-before))
		ret, ok2 := r.mem.Word(field(t.Addr, r.fields.Exceptions-before+8))
		on, _ := t.OnStack(arch.Addr(slot))
		if ok1 && ok2 && on && r.span.Has(arch.Addr(ret)) {
			t.HijackSlot, t.HijackReturn = arch.Addr(slot), arch.Addr(ret)
		}
	}
}
