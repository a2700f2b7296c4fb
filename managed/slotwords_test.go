package managed

import (
	"errors"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/unwind"
)

// returnSlot returns where the return address lies by which the k-th frame was
// found; ok is false where it was in a register.
func returnSlot(s *Session, st *stack, k int) (slot uint64, ok bool) {
	r, _, out, _ := s.unwinder.RuleAt(st.frames[k-1].PC)
	if out != unwind.UseRule {
		return 0, false
	}
	for _, sv := range r.Saved[:r.N] {
		if sv.Reg == s.Process.Arch.PC || sv.Reg == r.RA {
			return uint64(st.frames[k].SP) + uint64(int64(sv.Off)), true
		}
	}
	return 0, false
}

// layouts are where Thread objects have what the tests below write to, by fixture.
var layouts = map[string]struct{ state, link, osid uint64 }{
	"net10-hello":       {threadState, threadLink, threadOSID},
	"net10-hello-arm64": {threadState, 152, 336},
}

// A thread whose return address the runtime has replaced, to get hold of it
// when the method returns, and which has not returned yet. The dumps of
// suspended processes have none: DoStackSnapshot undoes it.
func TestPendingHijack(t *testing.T) {
	for name, l := range layouts {
		v := newVictim(t, name)
		n := 0
		for _, th := range v.threads {
			if th.OSID == 0 {
				continue
			}
			st := v.stack(uint32(th.OSID))
			for k := 1; k < len(st.frames); k++ {
				f := &st.frames[k]
				slot, ok := returnSlot(v.s, st, k)
				if st.frames[k-1].Kind != Managed || f.Kind != Managed || !ok {
					continue
				}
				n++
				edit := func(mark uint64) *coreedit.Core {
					c := editable(t, name)
					a := uint64(th.Addr)
					state, _ := c.Word(a + l.state)
					trip := uint64(coreclr(v.s).Image.Span().Lo) + 0x1000
					if err := errors.Join(c.SetWord(slot, trip), c.SetWord(a+l.state, state|mark),
						c.SetWord(a+l.link+40, uint64(f.PC.Addr)), c.SetWord(a+l.link+48, slot)); err != nil {
						t.Fatal(err)
					}
					return c
				}
				openEdit(t, edit(0x80), func(s *Session) {
					if same := v.compare(s, "hijacked"); same != len(v.stacks) {
						t.Errorf("%s, thread %d, frame %d hijacked: %d of %d stacks are the same", name, th.OSID, k, same, len(v.stacks))
					}
				})
				// Without the mark the words are left over from another time.
				openEdit(t, edit(0), func(s *Session) {
					fs, _ := s.NewWalker().Walk(nil, threadOf(t, s, uint32(th.OSID)))
					if len(fs) > k && placeOf(&fs[k]) == placeOf(f) {
						t.Errorf("%s, thread %d, frame %d: a hijack that is none is undone", name, th.OSID, k)
					}
				})
				break
			}
		}
		if n < 5 {
			t.Errorf("%s: only %d threads could be hijacked", name, n)
		}
	}
}

// A return address that is none is no frame, and a return address of zero in the
// middle of a stack is not its end: a gap names the slot, and the walk goes on.
func TestBadReturnAddress(t *testing.T) {
	for name := range layouts {
		v := newVictim(t, name)
		tries, gaps := 0, 0
		for _, th := range v.threads {
			if th.OSID == 0 {
				continue
			}
			st := v.stack(uint32(th.OSID))
			for k := 1; k < len(st.frames)-1; k++ {
				slot, ok := returnSlot(v.s, st, k)
				// Behind its oldest Frame a thread is in the runtime's and libc's own
				// code, which ends within a page or two of the stack's.
				if !ok || th.StackBase-st.frames[k].SP < 1<<12 || k > 12 {
					continue
				}
				for _, word := range []uint64{0, 4, 0x200000002, uint64(st.frames[k].SP), 1 << 60} {
					c := editable(t, name)
					if err := c.SetWord(slot, word); err != nil {
						t.Fatal(err)
					}
					tries++
					openEdit(t, c, func(s *Session) {
						fs, stop := s.NewWalker().Walk(nil, threadOf(t, s, uint32(th.OSID)))
						why := stop
						if len(fs) > k && fs[k].Kind == Gap {
							gaps++
							why = fs[k].Why
						} else if len(fs) != k {
							t.Errorf("%s: thread %d, return address %d is %#x: frame %d is %v", name, th.OSID, k, word, k, placeOf(&fs[k]))
							return
						}
						// Of an address that stands in no list, only the runtime's map of code
						// says that it is none, and a cut dump has that in parts.
						unknown := why.Reason == unwind.InfoMissing && word == 0x200000002
						if !unknown && (why.Reason != unwind.BadReturnAddress || why.At != arch.Addr(slot)) {
							t.Errorf("%s: thread %d, return address %d is %#x: %v at %v, want bad_return_address at %#x", name, th.OSID, k, word, why.Reason, why.At, slot)
						}
						known := map[place]bool{}
						for i := range st.frames {
							known[placeOf(&st.frames[i])] = true
						}
						for i := range fs {
							if f := &fs[i]; f.Kind != Gap && f.SP != 0 && !known[placeOf(f)] {
								t.Errorf("%s: thread %d, return address %d is %#x: %v by %v is no frame", name, th.OSID, k, word, placeOf(f), f.By)
							}
						}
					})
				}
			}
		}
		if t.Logf("%s: %d bad return addresses, %d of them in front of a gap", name, tries, gaps); gaps*5 < tries*2 {
			t.Errorf("%s: the walk goes on behind %d of %d", name, gaps, tries)
		}
	}
}

// A Thread object stays in the list of threads, with the id of its OS thread,
// when that has ended, and the OS gives the id to another thread.
func TestThreadOfSameID(t *testing.T) {
	for name, l := range layouts {
		v := newVictim(t, name)
		// The newest object is the last of the list.
		old, live := v.threads[len(v.threads)-1], v.threads[3]
		for what, mark := range map[string]uint64{"detached": 0x80000000, "dead": 0x800, "alive": 0} {
			c := editable(t, name)
			state, _ := c.Word(uint64(old.Addr) + l.state)
			if err := errors.Join(c.SetWord(uint64(old.Addr)+l.osid, live.OSID), c.SetWord(uint64(old.Addr)+l.state, state|mark)); err != nil {
				t.Fatal(err)
			}
			openEdit(t, c, func(s *Session) {
				if m, _ := s.Thread(uint32(live.OSID)); m == nil || m.Addr != live.Addr {
					t.Errorf("%s: with a %s thread of the same id, thread %d is %+v, want the one at %v", name, what, live.OSID, m, live.Addr)
				}
			})
		}
	}
}
