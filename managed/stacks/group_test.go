package stacks

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
)

func TestGroup(t *testing.T) {
	native := func(function string, pc uint64) Frame {
		return Frame{PC: arch.PC{Addr: arch.Addr(pc)}, Place: &Place{Kind: Native, Module: "lib.so", Function: function, Symbol: function, Offset: pc & 0xff}}
	}
	with := func(f Frame, change func(*Place)) Frame {
		p := *f.Place
		change(&p)
		f.Place = &p
		return f
	}
	method := Frame{PC: arch.PC{Addr: 0x9000}, Place: &Place{Kind: Managed, Module: "app.dll", Function: "A.B()", Method: &Method{FuncletKnown: true}}}
	gap := func(reason string, at arch.Addr) Frame {
		return Frame{Place: &Place{Kind: Gap, Why: &Stop{Reason: reason, At: at}}}
	}
	end := Stop{Reason: "end_of_stack", Complete: true}
	base := []Frame{native("wait", 0x1010), method, native("start", 0x2020)}
	changed := func(i int, f Frame) []Frame { c := slices.Clone(base); c[i] = f; return c }
	threads := []*Thread{
		{TID: 1, Frames: base, Stop: end},
		{TID: 2, Frames: changed(0, native("wait", 0x1020)), Stop: end},                                                  // elsewhere in the function
		{TID: 3, Frames: changed(0, native("poll", 0x1010)), Stop: end},                                                  // another function
		{TID: 4, Frames: changed(0, with(base[0], func(p *Place) { p.Module = "lib2.so" })), Stop: end},                  // another module
		{TID: 5, Frames: changed(0, with(base[0], func(p *Place) { p.Symbol = "wait2" })), Stop: end},                    // an overload
		{TID: 6, Frames: changed(1, with(method, func(p *Place) { p.Kind = Native })), Stop: end},                        // another kind
		{TID: 7, Frames: changed(1, with(method, func(p *Place) { p.Method = &Method{Funclet: true} })), Stop: end},      // its handler
		{TID: 8, Frames: base[:2], Stop: end},                                                                            // shorter
		{TID: 9, Frames: base, Stop: Stop{Reason: "memory_missing"}},                                                     // ends otherwise
		{TID: 10, Frames: base, Omitted: Omitted{Frames: 1}, Stop: end},                                                  // more was left out
		{TID: 11, Frames: changed(2, native("", 0x3030)), Stop: end},                                                     // no name
		{TID: 12, Frames: changed(2, native("", 0x3031)), Stop: end},                                                     // no name, elsewhere
		{TID: 13, Frames: changed(2, native("", 0x3030)), Stop: end},                                                     // as 11
		{TID: 14, Frames: changed(1, gap("no_rule", 1)), Stop: end},                                                      // a gap
		{TID: 15, Frames: changed(1, gap("no_rule", 2)), Stop: end},                                                      // a gap for the same reason
		{TID: 16, Frames: changed(1, gap("info_missing", 1)), Stop: end},                                                 // a gap for another
		{TID: 17, Frames: slices.Clone(base), Stop: Stop{Reason: "end_of_stack", PC: 0x2020, Complete: true, Text: "."}}, // as 1
	}
	want := [][]uint32{{1, 2, 17}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11, 13}, {12}, {14, 15}, {16}}
	groups := Group(slices.Values(threads))
	if len(groups) != len(want) {
		t.Errorf("%d groups, want %d", len(groups), len(want))
	}
	for i, g := range groups {
		if i < len(want) && !slices.Equal(g.Threads, want[i]) {
			t.Errorf("group %d is of threads %v, want %v", i, g.Threads, want[i])
		}
		if g.Stack.TID != g.Threads[0] {
			t.Errorf("group %d shows thread %d, its first is %d", i, g.Stack.TID, g.Threads[0])
		}
	}
	// A group's stack is a copy: All overwrites what it hands out.
	threads[0].Frames[0] = native("overwritten", 1)
	if f := groups[0].Stack.Frames[0].Function; f != "wait" {
		t.Errorf("the first group begins with %s", f)
	}
}

// The groups of a real process are equal stacks, and all of them.
func TestGroupFixture(t *testing.T) {
	stacks := Of(fixture(t, "net10-busy-a"), nil)
	shown := func(th *Thread) (s string) {
		for i := range th.Frames {
			f := &th.Frames[i]
			s += string(f.Kind) + f.Module + "!"
			if f.Function == "" {
				s += f.PC.Addr.String()
			}
			s += f.Function + "\n"
		}
		return s
	}
	byText := map[string][]uint32{}
	for th, err := range stacks.All() {
		if err != nil {
			t.Fatal(err)
		}
		byText[shown(th)] = append(byText[shown(th)], th.TID)
	}
	groups, err := stacks.Groups()
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != len(byText) || len(groups) == len(stacks.Threads()) {
		t.Errorf("%d groups of %d threads; their texts give %d", len(groups), len(stacks.Threads()), len(byText))
	}
	for _, g := range groups {
		if want := byText[shown(g.Stack)]; !slices.Equal(g.Threads, want) {
			t.Errorf("threads %v are a group, their texts say %v", g.Threads, want)
		}
	}
}
