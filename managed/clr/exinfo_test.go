package clr

import "testing"

// TestExInfoRows takes the row of a version, the newest for one that is not known;
// what a descriptor gives goes before it. Of a version newer than all rows, what
// its descriptor does not give is said.
func TestExInfoRows(t *testing.T) {
	version := func(v string, given map[string]int) (*exInfoLayout, []string) {
		r := fakeRuntime(t, nil)
		r.data = fakeContract(t)
		r.Version = v
		delete(r.data.offsets, "ExceptionInfo.PreviousNestedInfo")
		for name, off := range given {
			r.data.offsets["ExceptionInfo."+name] = off
		}
		if err := r.layouts(); err != nil {
			t.Fatal(err)
		}
		return r.exInfo()
	}
	row8 := exInfoLayout{Prev: 0x08, Thread: 0x10, Low: 0x18, High: 0x20, Flags: 0xc8, Funclet: 0x118, Clause: 0x120, Entered: 0x124, Enclosing: 0x128}
	row9 := exInfoLayout{Prev: 0, Clause: 0x38, Entered: 0x3c, Flags: 0x40, Low: 0x80, High: 0x88, Funclet: 0x420, Enclosing: 0x428, Thread: -1}
	row10 := row9
	row10.Funclet, row10.Enclosing = 0x218, 0x220
	for v, want := range map[string]exInfoLayout{"": row10, "8.0.31": row8, "9.0.20": row9, "10.0.12": row10} {
		if l, lacks := version(v, nil); l == nil || *l != want || lacks != nil || l.onStack() != (want.Thread < 0) {
			t.Errorf("%s: %+v, %v", v, l, lacks)
		}
	}
	if l, _ := version("7.0.1", nil); l != nil {
		t.Errorf("7: %+v", l)
	}
	if l, lacks := version("11.0.0", nil); l != nil || len(lacks) != 8 {
		t.Errorf("11 without a descriptor of it: %+v, %v", l, lacks)
	}
	given := map[string]int{"PreviousNestedInfo": 8, "ExceptionFlags": 16, "StackLowBound": 24, "StackHighBound": 32, "CSFEHClause": 40, "CSFEnclosingClause": 48}
	l, lacks := version("11.0.0", given)
	if want := (exInfoLayout{Prev: 8, Flags: 16, Low: 24, High: 32, Funclet: 40, Enclosing: 48, Entered: -1, Clause: -1, Thread: -1}); l == nil || *l != want || len(lacks) != 2 {
		t.Errorf("11: %+v, %v", l, lacks)
	}
	if l, _ := version("10.0.12", given); l == nil || l.Low != 24 || l.Entered != 0x3c {
		t.Errorf("10 with a newer descriptor: %+v", l)
	}
	r := fakeRuntime(t, nil)
	if warns := r.warnings(); len(warns) != 0 {
		t.Errorf("10.0: %v", warns)
	}
	r.data, r.Version = fakeContract(t), "11.0.0"
	if err := r.layouts(); err != nil || len(r.warnings()) != 1 {
		t.Errorf("11.0: %v, %v", r.warnings(), err)
	}
}
