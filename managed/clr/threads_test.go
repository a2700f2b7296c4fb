package clr

import (
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/managed/code"
)

// The places of a Thread's fields in .NET 10 for Linux on x86-64.
const (
	threadState = 0
	threadLink  = 112
	stackBase   = 120
	stackLimit  = 128
	hijackRet   = 152
	hijackSlot  = 160
)

// TestEditedThread changes the fields of a real Thread: each has its place, a stack
// that ends within a page is none, and the words of a hijack mean something while
// the thread's state says so and the slot is on its stack.
func TestEditedThread(t *testing.T) {
	fx := readFixture(t, "net10-hello")
	ts := threadsOf(t, fx.edited(nil))
	was := ts[0]
	find := func(r *Runtime) *code.Thread {
		now, _ := r.Threads()
		for i := range now {
			if now[i].Addr == was.Addr {
				return &now[i]
			}
		}
		return nil
	}
	edit := func(words map[arch.Addr]uint64) *code.Thread {
		return find(fx.edited(func(c *coreedit.Core) {
			for off, v := range words {
				if err := c.SetWord(uint64(was.Addr+off), v); err != nil {
					t.Fatal(err)
				}
			}
		}))
	}
	if was.StackBase == 0 || was.StackBase%pageSize != 0 || was.StackLimit >= was.StackBase || was.HijackSlot != 0 {
		t.Fatalf("%+v", was)
	}
	if th := edit(map[arch.Addr]uint64{stackBase: uint64(was.StackBase) + 8}); th.StackBase != 0 || th.StackLimit != 0 {
		t.Errorf("a stack that ends within a page: %v to %v", th.StackLimit, th.StackBase)
	}
	if th := edit(map[arch.Addr]uint64{stackLimit: uint64(was.StackBase)}); th.StackBase != 0 {
		t.Errorf("a stack without a byte: %v to %v", th.StackLimit, th.StackBase)
	}
	// The state and the mode are two words of four bytes.
	hijacked := uint64(was.State|threadHijacked) | 1<<32
	slot := uint64(was.StackBase) - 256
	words := map[arch.Addr]uint64{threadState: hijacked, hijackRet: 0x1234, hijackSlot: slot}
	if th := edit(words); !th.Cooperative || uint64(th.HijackSlot) != slot || th.HijackReturn != 0x1234 || th.HijackLost != 0 {
		t.Errorf("hijacked: %+v", th)
	}
	words[hijackSlot] = uint64(was.StackLimit) - 8
	if th := edit(words); th.HijackSlot != 0 || th.HijackReturn != 0 {
		t.Errorf("hijacked off its stack: %+v", th)
	}
	words[hijackSlot] = slot
	for _, off := range []arch.Addr{hijackRet, hijackSlot} {
		r := fx.edited(func(c *coreedit.Core) {
			for off, v := range words {
				if err := c.SetWord(uint64(was.Addr+off), v); err != nil {
					t.Fatal(err)
				}
			}
			c.Hole(uint64(was.Addr+off), 8)
		})
		if th := find(r); th == nil || th.HijackSlot != 0 || th.HijackLost != was.Addr+off {
			t.Errorf("without the word at %d: %+v", off, th)
		}
	}
	words[threadState] = uint64(was.State &^ threadHijacked)
	if th := edit(words); th.HijackSlot != 0 || th.Cooperative {
		t.Errorf("not hijacked any more: %+v", th)
	}
}

// TestBrokenThreadList: a list that is cut, or leads round in a circle, gives the
// threads before that, and a warning.
func TestBrokenThreadList(t *testing.T) {
	fx := readFixture(t, "net10-hello")
	ts := threadsOf(t, fx.edited(nil))
	second := ts[1].Addr + threadLink
	for what, r := range map[string]*Runtime{
		"goes on":   fx.set(second, uint64(ts[0].Addr+threadLink)),
		"missing":   fx.without(second, 8),
		"not whole": fx.without(ts[1].Addr+8, 8), // its Frame
	} {
		got, warns := r.Threads()
		if len(warns) != 1 || warns[0].Code != "threads_cut" || !strings.Contains(warns[0].Text, what) {
			t.Errorf("%s: %v", what, warns)
		}
		if len(got) == 0 || got[0] != ts[0] || len(got) > len(ts) {
			t.Errorf("%s: %d threads of %d", what, len(got), len(ts))
		}
	}
}
