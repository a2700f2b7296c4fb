package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// threadNameLayout is where the names of threads are.
type threadNameLayout struct {
	Exposed int `c:"Thread.GCHandle"` // a handle of the managed Thread object, null if nobody has asked for that
	Name    int `c:"ManagedThread._name"`
	Native  int `c:"ManagedThread._DONT_USE_InternalThread"`
}

// threadPoolWorker is TS_TPWorkerThread of Thread::m_State (src/coreclr/vm/threads.h).
const threadPoolWorker = 0x01000000

// maxThreadName bounds the name of a thread, in UTF-16 units.
const maxThreadName = 1 << 10

// ThreadName returns the name that the program has given t, out of its managed
// Thread object, which leads back to t.
func (r *Runtime) ThreadName(t *code.Thread) string {
	l := &r.names.threadNameLayout
	handle, ok := r.word(field(t.Addr, l.Exposed))
	if !ok || handle == 0 {
		return ""
	}
	obj, ok := r.word(arch.Addr(handle))
	if !ok || obj == 0 {
		return ""
	}
	back, ok := r.word(field(arch.Addr(obj), l.Native))
	if !ok || arch.Addr(back) != t.Addr {
		return ""
	}
	name, known := r.fieldObject(field(arch.Addr(obj), l.Name))
	if !known || name == 0 || !r.isString(name) {
		return ""
	}
	if n, ok := r.u32(field(name, r.names.StringSize)); !ok || n > maxThreadName {
		return ""
	}
	s, _ := r.text(name)
	return s
}

// Role says what t is for, as far as the runtime has noted it.
func (r *Runtime) Role(t *code.Thread) code.Role {
	if at, ok := r.data.pointer("FinalizerThread"); ok {
		if v, ok := r.word(at); ok && arch.Addr(v) == t.Addr {
			return code.RoleFinalizer
		}
	}
	if t.State&threadPoolWorker != 0 {
		return code.RoleThreadPool
	}
	return code.RoleUnknown
}
