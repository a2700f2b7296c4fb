package clr

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// TestContextLayouts reads all of the table of CONTEXTs.
func TestContextLayouts(t *testing.T) {
	for _, a := range arch.All() {
		i := slices.IndexFunc(contextLayouts(), func(l ContextLayout) bool { return l.Arch == a.Name })
		if i < 0 {
			t.Errorf("no row for %s", a.Name)
			continue
		}
		l := contextLayouts()[i]
		if l.Base < a.Context.Size || l.FlagsAt+4 > l.Base || l.Whole == 0 || !slices.Contains(a.Names, l.Argument) {
			t.Errorf("%+v", l)
		}
		for _, os := range []string{arch.Linux, arch.Windows} {
			for major, last := 3, 0; major < 12; major++ {
				p := &Replay{r: &Runtime{arch: a, proc: &loader.Process{ABI: a.On(os)}, data: &contract{}}, major: major}
				got, ok := p.Context()
				if !ok || got.Size < l.Base || got.Size < last {
					t.Errorf("%s %s %d: %+v", a.Name, os, major, got)
				}
				last = got.Size
			}
		}
		for _, s := range l.Syscalls {
			if b, err := hex.DecodeString(s.Begin); err != nil || len(b) > s.Size {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestExInfoRows picks the row of a version, the newest for one that is not
// known; what a descriptor gives goes before it. Of a version newer than all
// rows, what its descriptor does not give is said.
func TestExInfoRows(t *testing.T) {
	version := func(v string, given map[string]int) (*exInfoRow, []string) {
		r := fakeRuntime(t, nil)
		r.Version = v
		for name, off := range given {
			r.data.offsets["ExceptionInfo."+name] = off
		}
		return r.exInfo()
	}
	for v, want := range map[string]int{"": 10, "8.0.31": 8, "9.0.20": 9, "10.0.12": 10} {
		if row, lacks := version(v, nil); row == nil || row.major != want || lacks != nil {
			t.Errorf("%s: %+v, %v", v, row, lacks)
		}
	}
	if row, _ := version("7.0.1", nil); row != nil {
		t.Errorf("7: %+v", row)
	}
	if row, lacks := version("11.0.0", nil); row != nil || len(lacks) != 7 {
		t.Errorf("11 without a descriptor of it: %+v, %v", row, lacks)
	}
	given := map[string]int{"PreviousNestedInfo": 8, "ExceptionFlags": 16, "StackLowBound": 24, "StackHighBound": 32, "CSFEHClause": 40, "CSFEnclosingClause": 48}
	row, lacks := version("11.0.0", given)
	if want := (exInfoRow{major: 10, Prev: 8, Flags: 16, Low: 24, High: 32, Funclet: 40, Enclosing: 48, Entered: -1, Clause: -1, Thread: -1, onStack: true}); row == nil || *row != want || len(lacks) != 2 {
		t.Errorf("11: %+v, %v", row, lacks)
	}
	if row, _ := version("10.0.12", given); row == nil || row.Low != 24 || row.Entered != 0x3c {
		t.Errorf("10 with a newer descriptor: %+v", row)
	}
	r := fakeRuntime(t, nil)
	if warns := r.warnings(); len(warns) != 0 {
		t.Errorf("10.0: %v", warns)
	}
	if r.Version = "11.0.0"; len(r.warnings()) != 1 {
		t.Errorf("11.0: %v", r.warnings())
	}
}
