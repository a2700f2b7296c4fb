package clr

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamwalk/seam/arch"
)

// TestInFlight reads an exception by its handle, and by the object itself, as
// later runtimes keep it.
func TestInFlight(t *testing.T) {
	const info, handle, object, text = arch.Addr(0x30000000), arch.Addr(0x30001000), arch.Addr(0x30002000), arch.Addr(0x30003000)
	for _, thrown := range []arch.Addr{handle, object} {
		f := newFakeTypes(t)
		mt := f.class(f.owner(t, ridMethod), f.class(f.owner(t, ridMain)))
		f.word(field(info, f.n.ExcThrown), thrown)
		f.word(handle, object)
		f.word(field(object, f.n.ObjectMT), mt|1) // the GC's mark
		f.word(field(object, f.n.ExcMessage), text)
		f.put(field(object, f.n.ExcHResult), 0x80131509, 4)
		f.word(field(text, f.n.ObjectMT), mt)
		f.put(field(text, f.n.StringSize), 4, 4)
		f.utf16(field(text, f.n.StringText), "help")
		r := fakeRuntime(t, f.core(t))
		want := &Exception{Type: "Generic`1[Program]", Message: "help", Address: object, HResult: 0x80131509}
		if d := cmp.Diff(want, r.InFlight(&Thread{Exception: info})); d != "" {
			t.Errorf("thrown %v: %s", thrown, d)
		}
		if e := r.InFlight(&Thread{}); e != nil {
			t.Errorf("no exception: %+v", e)
		}
		f.put(field(text, f.n.StringSize), 0x7fffffff, 4)
		r = fakeRuntime(t, f.core(t))
		want.Message = ""
		if d := cmp.Diff(want, r.InFlight(&Thread{Exception: info})); d != "" {
			t.Errorf("a message without end: %s", d)
		}
	}
}
