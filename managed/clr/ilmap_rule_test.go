package clr

import "testing"

// What the runtime's own stack traces have for places in a map, by release.
func TestILRule(t *testing.T) {
	at := func(native uint64, il uint32) mapping { return mapping{native: native, il: il} }
	call := func(native uint64, il uint32) mapping { return mapping{native, il, true} }
	same := func(il uint32) [2]uint32 { return [2]uint32{il, il} }
	cases := []struct {
		name   string
		ms     []mapping
		native uint64
		want   [2]uint32 // by ilLastCounts, by ilLeastCounts
	}{
		{"nothing", nil, 5, same(0)},
		{"before the first", []mapping{at(7, 3)}, 5, same(0)},
		{"exactly", []mapping{at(0, prologIL), at(7, 3), at(9, 6)}, 7, same(3)},
		{"between", []mapping{at(0, prologIL), at(7, 3), at(9, 6)}, 8, same(3)},
		{"last", []mapping{at(0, prologIL), at(7, 3), at(9, 6)}, 1 << 40, same(6)},
		{"prologue", []mapping{at(0, prologIL), at(7, 3)}, 6, same(0)},
		{"no prologue", []mapping{at(0, prologIL), at(0, 3), at(9, 6)}, 4, [2]uint32{3, 0}},
		{"no mapping", []mapping{at(0, 3), at(5, noMappingIL), at(9, 6)}, 5, same(0)},
		{"epilogue", []mapping{at(0, 3), at(5, epilogIL), at(9, 6), at(12, 0x20), at(30, 4)}, 6, same(0x20)},
		{"epilogue at the end", []mapping{at(0, 3), at(5, 0x11), at(9, epilogIL)}, 20, same(0x11)},
		{"a call between", []mapping{at(0, 3), call(4, 5), at(9, 6)}, 6, same(3)},
		{"two at one place", []mapping{at(0, 3), at(5, 4), at(5, 9), at(20, 6)}, 7, [2]uint32{9, 4}},
		{"no mapping at one place", []mapping{at(0, 3), at(5, 9), at(5, noMappingIL), at(20, 6)}, 7, [2]uint32{0, 9}},
		{"calls at the end", []mapping{at(0, 3), call(5, 4), call(9, 6)}, 8, same(3)},
		{"behind the last call", []mapping{at(0, 3), call(5, 4), call(9, 6)}, 12, [2]uint32{0, 3}},
		{"a call counts for epilogues", []mapping{at(0, 3), call(5, 0x40), at(9, epilogIL)}, 12, same(0x40)},
	}
	for _, c := range cases {
		for rule, want := range c.want {
			f := ilFinder{native: c.native, rule: ilRule(rule)}
			for _, m := range c.ms {
				if !f.entry(m) {
					break
				}
			}
			if got := f.offset(); got != want {
				t.Errorf("%s, rule %d: IL %#x at %d, want %#x", c.name, rule, got, c.native, want)
			}
		}
	}
}
