package clr

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
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
		f.word(field(object, f.n.ExcInner), 0)
		f.word(field(object, f.n.ExcTrace), 0)
		f.word(field(mt, f.n.MTParent), 0)
		f.word(field(text, f.n.ObjectMT), mt)
		f.put(field(text, f.n.StringSize), 4, 4)
		f.utf16(field(text, f.n.StringText), "help")
		r := fakeRuntime(t, f.core(t))
		want := &code.Exception{Type: "Generic`1[Program]", Address: object, Message: "help", HasMessage: true, HResult: 0x80131509, HasHResult: true}
		if d := cmp.Diff(want, r.InFlight(&code.Thread{Exception: info})); d != "" {
			t.Errorf("thrown %v: %s", thrown, d)
		}
		if e := r.InFlight(&code.Thread{}); e != nil {
			t.Errorf("no exception: %+v", e)
		}
		f.put(field(text, f.n.StringSize), 0x7fffffff, 4)
		r = fakeRuntime(t, f.core(t))
		want.Message, want.HasMessage = "", false
		if d := cmp.Diff(want, r.InFlight(&code.Thread{Exception: info})); d != "" {
			t.Errorf("a message without end: %s", d)
		}
	}
}

// TestInFlightHoles takes each word away that an exception inside of another is
// made of: what is said of it is right, or it is not said. The older exception
// is not taken for the newer.
func TestInFlightHoles(t *testing.T) {
	const info, older, handle, olderHandle = arch.Addr(0x30000000), arch.Addr(0x30000400), arch.Addr(0x30001000), arch.Addr(0x30001800)
	const object, olderObject, text = arch.Addr(0x30002000), arch.Addr(0x30002800), arch.Addr(0x30003000)
	f := newFakeTypes(t)
	mt := f.class(f.owner(t, ridMethod), f.class(f.owner(t, ridMain)))
	f.word(field(info, f.n.ExcThrown), handle)
	f.word(field(info, f.n.ExcObject), object)
	f.word(field(info, f.n.ExcPrev), older)
	f.word(handle, object)
	f.word(field(older, f.n.ExcThrown), olderHandle)
	f.word(field(older, f.n.ExcObject), olderObject)
	f.word(field(older, f.n.ExcPrev), 0)
	f.word(olderHandle, olderObject)
	for _, o := range []arch.Addr{object, olderObject} {
		f.word(field(o, f.n.ObjectMT), mt)
		f.word(field(o, f.n.ExcMessage), text)
		f.put(field(o, f.n.ExcHResult), uint64(o), 4)
		f.word(field(o, f.n.ExcInner), 0)
		f.word(field(o, f.n.ExcTrace), 0)
	}
	f.word(field(mt, f.n.MTParent), 0)
	f.put(field(text, f.n.StringSize), 20, 4)
	f.utf16(field(text, f.n.StringText), "a message of 20 unit")
	want := code.Exception{Type: "Generic`1[Program]", Address: object, Message: "a message of 20 unit", HasMessage: true, HResult: uint32(object), HasHResult: true}
	if got := fakeRuntime(t, f.core(t)).InFlight(&code.Thread{Exception: info}); !reflect.DeepEqual(*got, want) {
		t.Fatalf("%+v, want %+v", *got, want)
	}
	less := 0
	for at, v := range f.fakeMemory {
		if at >= fakeImage && at < fakeImage+0x10000 && at%256 != 0 {
			continue // the metadata has tests of its own
		}
		delete(f.fakeMemory, at)
		got := fakeRuntime(t, f.core(t)).InFlight(&code.Thread{Exception: info})
		f.fakeMemory[at] = v
		if !reflect.DeepEqual(*got, want) {
			less++
		}
		if got.Type != "" && got.Type != want.Type || got.Address != 0 && got.Address != want.Address ||
			got.HasMessage && got.Message != want.Message || !got.HasMessage && got.Message != "" ||
			got.HasHResult && got.HResult != want.HResult || !got.HasHResult && got.HResult != 0 {
			t.Errorf("without %v: %+v", at, *got)
		}
	}
	if less < 20 {
		t.Errorf("only %d words count", less)
	}
}
