package clr

import (
	"testing"

	"github.com/seamwalk/seam/managed/code"
)

// TestPatchpoints: a method may have been replaced on the stack if its debug
// information, in the form of any release, has patchpoints, and if the bytes that
// say so are missing.
func TestPatchpoints(t *testing.T) {
	const header, info = 0x7000_0000, 0x7000_1000
	counts := func(numbers ...uint32) []byte {
		var w nibbleWriter
		for _, n := range numbers {
			w.number(n)
		}
		return append(w.b, make([]byte, 8)...)
	}
	for _, test := range []struct {
		what, version string
		b             []byte
		want          bool
	}{
		{"patchpoints", "9.0.20", []byte{debugPatchpoints}, true},
		{"rich information", "9.0.20", []byte{debugRich}, false},
		{"both", "10.0.12", []byte{debugRich | debugPatchpoints}, true},
		{"neither", "10.0.12", []byte{0}, false},
		{"bounds and variables alone", "11.0.0", counts(7, 2), false},
		{"no patchpoints among counts", "11.0.0", counts(0, 7, 2, 0, 0, 5, 1), false},
		{"patchpoints among counts", "11.0.0", counts(0, 7, 2, 0, 3, 0, 0), true},
	} {
		open := func(b []byte) *Runtime {
			m := fakeMemory{}
			m.bytes(info, b)
			m.word(header, info)
			r := fakeRuntime(t, m.core(t))
			if r.release, r.use = releaseOf(test.version); r.use == lentRow {
				r.data.contracts["DebugInfo"] = "c1"
			}
			return r
		}
		c := Code{Code: code.Code{Kind: code.JIT, Start: 0x7100_0000}, Header: header}
		if got := open(test.b).mayBeReplaced(&c); got != test.want {
			t.Errorf("%s, %s: %v", test.version, test.what, got)
		}
		if !open(nil).mayBeReplaced(&c) {
			t.Errorf("%s without its debug information: it cannot have been replaced", test.version)
		}
		r := open(test.b)
		if lost := (Code{Code: c.Code, Header: header + 0x10000}); !r.mayBeReplaced(&lost) {
			t.Errorf("%s without its header: it cannot have been replaced", test.version)
		}
		m := fakeMemory{}
		m.word(header, 0)
		if fakeRuntime(t, m.core(t)).mayBeReplaced(&c) {
			t.Error("a method without debug information may have been replaced")
		}
	}
}
