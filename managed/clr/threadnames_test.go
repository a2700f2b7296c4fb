package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// TestThreadName reads the name out of the managed Thread object, if that leads
// back to its thread, and the role out of what the runtime notes.
func TestThreadName(t *testing.T) {
	const thread, handle, object, name = arch.Addr(0x30000000), arch.Addr(0x30001000), arch.Addr(0x30002000), arch.Addr(0x30003000)
	f := newFakeTypes(t)
	mt := f.class(f.owner(t, ridMain))
	f.word(field(thread, f.n.Exposed), handle)
	f.word(handle, object)
	f.word(field(object, f.n.Name), name)
	f.word(field(object, f.n.Native), thread)
	f.word(field(name, f.n.ObjectMT), mt)
	f.put(field(name, f.n.StringSize), 6, 4)
	f.utf16(field(name, f.n.StringText), "worker")
	check := func(what, want string) {
		t.Helper()
		if got := fakeRuntime(t, f.core(t)).ThreadName(&code.Thread{Addr: thread}); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("a name", "worker")
	f.put(field(name, f.n.StringSize), maxThreadName+1, 4)
	check("a name without end", "")
	f.put(field(name, f.n.StringSize), 6, 4)
	f.word(field(object, f.n.Native), thread+8)
	check("an object of another thread", "")
	f.word(field(object, f.n.Native), thread)
	f.word(field(object, f.n.Name), 0)
	check("no name", "")
	f.word(handle, 0)
	check("no object", "")

	at, ok := fakeContract(t).pointer("FinalizerThread")
	if !ok {
		t.Fatal("the contract does not say where the finalizer thread is")
	}
	f.word(at, thread)
	r := fakeRuntime(t, f.core(t))
	for want, th := range map[code.Role]code.Thread{
		code.RoleFinalizer:  {Addr: thread},
		code.RoleThreadPool: {Addr: thread + 8, State: threadPoolWorker | 0x21220},
		code.RoleUnknown:    {Addr: thread + 16, State: 0x21220},
	} {
		if got := r.Role(&th); got != want {
			t.Errorf("%+v is %q, want %q", th, got, want)
		}
	}
}
