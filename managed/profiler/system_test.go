package profiler

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// TestModeFor takes the mode of a thread by its own mode and by the system.
func TestModeFor(t *testing.T) {
	cooperative, preemptive := &code.Thread{Cooperative: true}, &code.Thread{}
	for _, a := range arch.All() {
		for _, c := range []struct {
			os   string
			t    *code.Thread
			want Mode
		}{
			{arch.Linux, nil, Self}, {arch.Linux, preemptive, Suspended}, {arch.Linux, cooperative, Self},
			{arch.Windows, nil, Self}, {arch.Windows, preemptive, Suspended}, {arch.Windows, cooperative, OSSuspended},
		} {
			if got := ModeFor(a.On(c.os), c.t); got != c.want {
				t.Errorf("%s on %s: %v, want %v", c.os, a.Name, got, c.want)
			}
		}
	}
	// A system without a row does as Linux does.
	if got := ModeFor(&arch.ABI{OS: "plan9"}, cooperative); got != Self {
		t.Errorf("a system that is not known: %v", got)
	}
}
