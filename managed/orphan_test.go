package managed

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/managed/code"
)

// headersOf returns the code headers of the JIT-compiled methods that have a frame
// on one of stacks, by the starts of the methods' code.
func headersOf(s *Session, stacks []stack) map[arch.Addr]arch.Addr {
	headers := map[arch.Addr]arch.Addr{}
	for _, st := range stacks {
		for i := range st.frames {
			if in := &st.frames[i].Code; in.Kind == code.JIT && in.Body.Lo != 0 {
				own, _ := coreclr(s).CodeAt(in.Start)
				headers[in.Start] = own.Header
			}
		}
	}
	return headers
}

// loseHeaders takes code headers out of a dump: the header, or the word before the
// code that leads to it.
func loseHeaders(c *coreedit.Core, headers map[arch.Addr]arch.Addr, link bool) {
	for start, header := range headers {
		if link {
			c.Hole(uint64(start)-8, 8)
		} else {
			c.Hole(uint64(header), 32)
		}
	}
}

// TestLostHeaders takes the code headers of all JIT-compiled methods that have
// a frame out of a dump. No frame is made up, none is lost without a gap.
func TestLostHeaders(t *testing.T) {
	for _, name := range fixtures {
		whole := openFixture(t, name)
		want := walkAll(whole)
		headers := headersOf(whole, want)
		for _, link := range []bool{false, true} {
			c := editable(t, name)
			loseHeaders(c, headers, link)
			openEdit(t, c, func(s *Session) {
				frames, gaps := 0, 0
				for i, got := range walkAll(s) {
					f, g := heldAgainst(t, name, s.Process.Threads[i].ID, got, want[i])
					frames, gaps = frames+f, gaps+g
				}
				t.Logf("%s: without %d headers (links %v) %d frames and %d gaps", name, len(headers), link, frames, gaps)
			})
		}
	}
}

// heldAgainst compares a stack with that of the whole dump.
func heldAgainst(t *testing.T, name string, tid uint32, got, want stack) (frames, gaps int) {
	known := map[place]int{}
	for k := range want.frames {
		known[placeOf(&want.frames[k])] = k
	}
	next := 0 // in want; -1 behind a gap
	for k := range got.frames {
		f := &got.frames[k]
		if f.Kind == Gap {
			gaps++
			next = -1
			continue
		}
		at, ok := known[placeOf(f)]
		for i := 0; f.SP == 0 && !ok && i < len(want.frames); i++ { // the stack pointer is not known
			at, ok = i, i >= next && want.frames[i].PC == f.PC
		}
		switch {
		case !ok:
			t.Errorf("%s: thread %d has a frame at %v by %v, which is none", name, tid, placeOf(f), f.By)
		case next >= 0 && at != next:
			t.Errorf("%s: thread %d goes from frame %d to %d without a gap", name, tid, next-1, at)
		default:
			frames++
		}
		next = at + 1
	}
	if next >= 0 && next < len(want.frames) && got.stop.Reason.Complete() {
		t.Errorf("%s: thread %d is complete after %d of %d frames", name, tid, next, len(want.frames))
	}
	return frames, gaps
}
