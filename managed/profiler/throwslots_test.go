package profiler

import (
	"fmt"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// A throwFrame is the Frame of a managed throw on a thread.
type throwFrame struct {
	tid   uint32
	frame code.Frame
	pc    arch.Addr                 // of its CONTEXT
	sp    arch.Addr                 // of its CONTEXT
	ptrs  map[arch.Reg]arch.Addr    // where its context pointers lie
	slots map[arch.Reg]arch.Addr    // where they lead
	saved map[arch.Reg][2]arch.Addr // of those that do not lead into the CONTEXT, but for the frame pointer: the slot, the place in the CONTEXT
}

// throwFrames finds the Frames of managed throws by offsets of .NET 10 written
// down here once more: context pointers behind the return address, at 24, then
// the CONTEXT.
func throwFrames(s *managed.Session) (out []throwFrame) {
	a, mem := s.Process.Arch, s.Process.Memory
	ctx := map[string]arch.Addr{"amd64": 288, "arm64": 192}[a.Name]
	word := func(at arch.Addr) arch.Addr { v, _ := mem.Word(at); return arch.Addr(v) }
	for i := range s.Process.Threads {
		tid := s.Process.Threads[i].ID
		m, rt := s.Thread(tid)
		if m == nil {
			continue
		}
		for c := code.ChainOf(rt, m); ; {
			f, ok := c.Pop()
			if !ok {
				break
			}
			if clr.FrameOf(f).Kind != clr.SoftwareExceptionFrame {
				continue
			}
			t := throwFrame{tid: tid, frame: f, ptrs: map[arch.Reg]arch.Addr{}, slots: map[arch.Reg]arch.Addr{}, saved: map[arch.Reg][2]arch.Addr{}}
			at := map[arch.Reg]arch.Addr{}
			for _, x := range a.Context.Fields {
				at[x.Reg] = f.Addr + ctx + arch.Addr(x.Off)
			}
			t.pc, t.sp = word(at[a.PC]), word(at[a.SP])
			for _, x := range a.ContextPointers.Fields {
				if !s.Process.ABI.CalleeSaved.Has(x.Reg) {
					continue
				}
				t.ptrs[x.Reg] = f.Addr + 24 + arch.Addr(x.Off)
				slot := word(t.ptrs[x.Reg])
				// The frame pointer holds no object, and walks need it.
				if t.slots[x.Reg] = slot; slot != at[x.Reg] && x.Reg != a.FP {
					t.saved[x.Reg] = [2]arch.Addr{slot, at[x.Reg]}
				}
			}
			out = append(out, t)
		}
	}
	return out
}

// eachThrowCore runs a test over dumps with Frames of managed throws, of both CPUs.
func eachThrowCore(t *testing.T, test func(t *testing.T, core *coreedit.Core, frames []throwFrame)) {
	for name, path := range map[string]func(testing.TB) string{
		"amd64": func(testing.TB) string { return fixturePath("net10-scenarios") },
		"arm64": func(t testing.TB) string { return corpus.Path(t, "net10-scenarios-arm64", "dump.zst") },
	} {
		t.Run(name, func(t *testing.T) {
			core, err := coreedit.Read(path(t))
			if err != nil {
				t.Fatal(err)
			}
			var frames []throwFrame
			openEdit(t, core, func(s *managed.Session) { frames = throwFrames(s) })
			if len(frames) < 5 {
				t.Fatalf("%d Frames of throws", len(frames))
			}
			test(t, core, frames)
		})
	}
}

// TestThrowSlots moves the objects that callee-saved registers of a throwing
// frame hold, as a collection during the dispatch does: it updates the slots
// of the throw helper's frame, to which the Frame's context pointers lead, and
// not the copies in the Frame's CONTEXT. What walks hand on is in the slots.
func TestThrowSlots(t *testing.T) {
	eachThrowCore(t, func(t *testing.T, core *coreedit.Core, frames []throwFrame) {
		moved := func(r arch.Reg) uint64 { return 0x5ea100000000 + uint64(r) }
		edited, registers := core.Clone(), 0
		for _, f := range frames {
			for r, at := range f.saved {
				slot, _ := core.Word(uint64(at[0]))
				if was, ok := core.Word(uint64(at[1])); !ok || was != slot {
					t.Errorf("thread %d: register %d of the Frame at %v is %#x, its slot holds %#x", f.tid, r, f.frame.Addr, was, slot)
				}
				if err := edited.SetWord(uint64(at[0]), moved(r)); err != nil {
					t.Fatal(err)
				}
				registers++
			}
		}
		shown := 0
		openEdit(t, edited, func(s *managed.Session) {
			n, a := snapshotter(t, s), s.Process.Arch
			check := func(what string, f *throwFrame, regs *arch.Regs) {
				for r, slot := range f.slots {
					want, _ := s.Process.Memory.Word(slot)
					if _, ok := f.saved[r]; ok && want != moved(r) {
						t.Fatalf("the slot of %s holds %#x", a.RegName(r), want)
					}
					if v, ok := regs.Get(r); !ok || v != want {
						t.Errorf("thread %d: %s: %s is %#x, want %#x", f.tid, what, a.RegName(r), v, want)
					}
				}
			}
			for i := range frames {
				f := &frames[i]
				var regs arch.Regs
				if exact, ok := n.rt.Restore(f.frame, &regs); exact || !ok {
					t.Errorf("thread %d: restored: %v, exact %v", f.tid, ok, exact)
				}
				check("restored", f, &regs)
				m, _ := s.Thread(f.tid)
				n.Do(Request{Thread: ThreadID(m.Addr), Mode: Suspended}, func(c Call) HRESULT {
					regs, _ := c.Registers()
					if c.IP == f.pc && n.spOf(regs) == f.sp {
						shown++
						check(fmt.Sprintf("callback of %v", c.IP), f, regs)
					}
					return S_OK
				})
			}
		})
		if t.Logf("%d Frames of throws, %d registers in slots, %d callbacks", len(frames), registers, shown); registers < 3*len(frames) || shown < 2 {
			t.Error("too few")
		}
	})
}

// TestThrowPointers damages context pointers: without one the CONTEXT has the
// register, as in the runtime; what one leads to outside of the throw helper's
// frame is not believed, nor is the CONTEXT's copy then.
func TestThrowPointers(t *testing.T) {
	eachThrowCore(t, func(t *testing.T, core *coreedit.Core, frames []throwFrame) {
		f, tried := &frames[0], 0
		for r, at := range f.saved {
			if tried++; tried > 2 {
				break // the others are read alike
			}
			copied, _ := core.Word(uint64(at[1]))
			for _, bad := range []uint64{0, 0x1000, uint64(f.frame.Addr) - 8, uint64(f.sp), uint64(at[0]) + 1, ^uint64(0)} {
				edited := core.Clone()
				if err := edited.SetWord(uint64(f.ptrs[r]), bad); err != nil {
					t.Fatal(err)
				}
				// The copy differs from the slot, so that one is told from the other.
				if err := edited.SetWord(uint64(at[1]), copied+0x100); err != nil {
					t.Fatal(err)
				}
				openEdit(t, edited, func(s *managed.Session) {
					var regs arch.Regs
					_, ok := s.Runtimes[0].(*clr.Runtime).Restore(f.frame, &regs)
					if v, known := regs.Get(r); !ok || known != (bad == 0) || known && v != copied+0x100 {
						t.Errorf("%s with the pointer %#x: %#x, %v, %v", s.Process.Arch.RegName(r), bad, v, known, ok)
					}
				})
			}
		}
	})
}
