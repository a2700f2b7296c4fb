package clr

import (
	"encoding/hex"
	"fmt"
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
				r := &Runtime{arch: a, proc: &loader.Process{ABI: a.On(os)}, data: &contract{}, Version: fmt.Sprint(major)}
				r.release, r.use = releaseOf(r.Version)
				p := &Replay{r: r}
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
