package managed

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/unwind"
)

// TestBehindNoCall puts in the place of the return addresses by which managed code
// returns to native code what a runtime that suspends a thread puts there: the
// address of code that no call lies in front of. With the Thread that has the true
// one, the dump lacks what calls; the other is no frame.
func TestBehindNoCall(t *testing.T) {
	path := corpus.Path(t, "net10-hello-x64", "normal.zst")
	core, err := coreedit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := openCase(t, "net10-hello-x64", "normal.zst")
	mem, a := whole.Process.Memory, whole.Process.Arch
	tries := 0
	for i := range whole.Process.Threads {
		th := &whole.Process.Threads[i]
		fs, _ := whole.NewWalker().Walk(nil, th)
		for k := 1; k < len(fs); k++ {
			callee, f := &fs[k-1], &fs[k]
			if callee.Kind != Managed || callee.By != unwind.ByCodes || f.Kind != Native || f.By != unwind.ByCodes || f.PC.Exact {
				continue
			}
			slot := f.SP - arch.Addr(a.Word)
			v, ok := mem.Word(slot)
			stub := f.PC.Addr - 1
			if !ok || arch.Addr(v) != f.PC.Addr || mem.View(stub-16, 16) == nil || a.AfterCall(mem, stub) {
				continue
			}
			tries++
			c := core.Clone()
			if err := c.SetWord(uint64(slot), uint64(stub)); err != nil {
				t.Fatal(err)
			}
			openEdit(t, c, func(s *Session) {
				got, stop := s.NewWalker().Walk(nil, threadOf(t, s, th.ID))
				why := stop
				if len(got) > k && got[k].Kind == Gap {
					why = got[k].Why
				}
				if why.Reason != unwind.BadReturnAddress || why.At != slot {
					t.Errorf("thread %d, frame %d: %v at %v, want bad_return_address at %v", th.ID, k, why.Reason, why.At, slot)
				}
				for j := range got {
					if got[j].Kind != Gap && got[j].PC.Addr == stub {
						t.Errorf("thread %d: %v is no frame", th.ID, stub)
					}
				}
			})
		}
	}
	if tries < 8 {
		t.Errorf("only %d return addresses were tried", tries)
	}
}
