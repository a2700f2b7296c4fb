package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
)

// TestPinned finds the one String on a stack of which both addresses lie there.
func TestPinned(t *testing.T) {
	const lo, hi = arch.Addr(0x7ffd0000), arch.Addr(0x7ffd0040)
	const text, other = arch.Addr(0x30003000), arch.Addr(0x30004000)
	f := newFakeTypes(t)
	// The metadata has no System.String: the name of the class that stands in for
	// it is compared, so that its Strings are found not to be any.
	mt := f.class(f.owner(t, ridMain))
	for _, s := range []arch.Addr{text, other} {
		f.word(field(s, f.n.ObjectMT), mt)
		f.put(field(s, f.n.StringSize), 4, 4)
		f.utf16(field(s, f.n.StringText), "help")
	}
	for a := lo; a < hi; a += 8 {
		f.word(a, 1)
	}
	f.word(lo+8, text)
	f.word(lo+24, field(text, f.n.StringText))
	r := fakeRuntime(t, f.core(t))
	if s, ok := r.pinned(lo, hi); ok {
		t.Errorf("an object of another class is the text %q", s)
	}
	name, err := r.TypeName(mt)
	if err != nil {
		t.Fatal(err)
	}
	r.names.kept.types.Store(mt, typeResult{typ: ecma.Type{Name: "System.String"}})
	if s, ok := r.pinned(lo, hi); !ok || s != "help" {
		t.Errorf("%q, %v (class %s)", s, ok, name)
	}
	for what, change := range map[string]func(){
		"the text's address alone":   func() { f.word(lo+8, 1) },
		"the object's address alone": func() { f.word(lo+24, 1) },
		"two Strings":                func() { f.word(lo+32, other); f.word(lo+40, field(other, f.n.StringText)) },
		"a String that is not there": func() { f.word(lo+32, 0x71000000); f.word(lo+40, field(0x71000000, f.n.StringText)) },
		"a hole in the stack":        func() { delete(f.fakeMemory, lo+48) },
	} {
		kept := map[arch.Addr]uint64{}
		for a := lo; a < hi; a += 8 {
			kept[a] = f.fakeMemory[a]
		}
		change()
		r := fakeRuntime(t, f.core(t))
		r.names.kept.types.Store(mt, typeResult{typ: ecma.Type{Name: "System.String"}})
		if s, ok := r.pinned(lo, hi); ok {
			t.Errorf("%s: %q", what, s)
		}
		for a, v := range kept {
			f.fakeMemory[a] = v
		}
	}
	if s, ok := r.pinned(lo, lo+maxPinned+8); ok {
		t.Errorf("of a frame without end: %q", s)
	}
}

// TestCallAt: which call of a method code stands in, by its IL offset.
func TestCallAt(t *testing.T) {
	il := []byte{
		0x72, 1, 0, 0, 0x70, 0x28, 2, 0, 0, 0x0a, // 0: ldstr, 5: call
		0x72, 3, 0, 0, 0x70, 0x28, 4, 0, 0, 0x0a, // 10: ldstr, 15: call
		0x2b, 0xf9, 0x2a, // 20: br.s 15, 22: ret
	}
	list := ecma.Instructions(il)
	for _, tt := range []struct {
		off   uint32
		known bool
		at    uint32 // of the call; 0: not known
	}{{0, true, 5}, {5, true, 5}, {6, true, 15}, {10, true, 15}, {20, true, 0}, {0, false, 0}} {
		k, ok := callAt(list, tt.off, tt.known)
		if ok != (tt.at != 0) || ok && list[k].At != tt.at {
			t.Errorf("offset %d, known %v: instruction %d, %v", tt.off, tt.known, k, ok)
		}
	}
	if k, ok := callAt(list[:2], 0, false); !ok || k != 1 {
		t.Errorf("the only call: %d, %v", k, ok)
	}
	two := ecma.Instructions([]byte{0x72, 1, 0, 0, 0x70, 0x07, 0x28, 2, 0, 0, 0x0a, 0x2b, 0xf8})
	for _, tt := range []struct {
		list         []ecma.Instruction
		call, params int
		k            int // -1: not known
	}{
		{list, 1, 1, 0},
		{list, 3, 1, -1},    // a branch leads to the call
		{two, 2, 2, -1},     // and to the second argument
		{two[:3], 2, 2, 0},  // ldstr, ldloc.1
		{two[:3], 2, 1, 1},  // ldloc.1 alone
		{list, 3, 2, -1},    // a call is no argument
		{two[:3], 2, 3, -1}, // more than there are
		{two[:3], 2, 0, -1},
	} {
		if k, ok := firstArgument(tt.list, tt.call, tt.params); ok != (tt.k >= 0) || ok && k != tt.k {
			t.Errorf("call %d with %d arguments: %d, %v", tt.call, tt.params, k, ok)
		}
	}
	many := ecma.Instructions([]byte{0x14, 0x14, 0x14, 0x14, 0x28, 2, 0, 0, 0x0a})
	if _, ok := firstArgument(many, 4, maxParams+1); ok {
		t.Error("a FailFast with more parameters than there are")
	}
	if jumpsTo(list, 5) || !jumpsTo(list, 15) {
		t.Error("branches are not followed")
	}
}
