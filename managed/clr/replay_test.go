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
		for _, os := range []string{"linux", "windows"} {
			for major, last := 3, 0; major < 12; major++ {
				p := &Replay{r: &Runtime{arch: a, proc: &loader.Process{OS: os}, data: &contract{}}, major: major}
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

// TestExInfoRows picks the row of a version, the newest for one that is not known.
func TestExInfoRows(t *testing.T) {
	for major, want := range map[int]int{0: 10, 8: 8, 9: 9, 10: 10} {
		if row := exInfoFor(major); row == nil || row.major != want {
			t.Errorf("%d: %+v", major, row)
		}
	}
	if row := exInfoFor(7); row != nil {
		t.Errorf("7: %+v", row)
	}
}
