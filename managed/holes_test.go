package managed

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

// TestEveryHole takes out of a dump, one after the other, each page that
// opening it and walking one stack read, and where that changes the stack each
// half of the page, down to every single word that counts. Whatever is missing:
// the frames before it are those of the whole dump, then a gap or the stop
// names the word, and no frame is made up.
func TestEveryHole(t *testing.T) {
	for _, c := range []struct {
		fixture string
		tid     uint32
		words   int // that count, at least
	}{
		{"net10-hello", 3684, 150},   // in a P/Invoke
		{"net10-busy-b", 10684, 100}, // in the handler of a hardware fault
	} {
		t.Run(fmt.Sprintf("%s/%d", c.fixture, c.tid), func(t *testing.T) {
			t.Parallel()
			h := &holes{t: t, core: editable(t, c.fixture), tid: c.tid, known: map[place]bool{}}
			var err error
			if h.file, err = os.Create(filepath.Join(t.TempDir(), "core")); err != nil {
				t.Fatal(err)
			}
			defer h.file.Close()
			if _, err := h.file.Write(h.core.Bytes()); err != nil {
				t.Fatal(err)
			}
			openPath(t, h.file.Name(), func(s *Session) {
				h.want = h.walk(s)
				for i := range h.want.frames {
					h.known[placeOf(&h.want.frames[i])] = true
				}
			})
			for _, sp := range h.touched() {
				for a := sp.Lo; a < sp.Hi; a += 4096 {
					h.try(a, 4096)
				}
			}
			if t.Logf("%s, thread %d: %d holes, of which %d change its %d frames; %d words count", c.fixture, c.tid, h.tries, h.changes, len(h.want.frames), h.words); h.words < c.words {
				t.Errorf("%s, thread %d: only %d words count", c.fixture, c.tid, h.words)
			}
		})
	}
}

type holes struct {
	t     *testing.T
	core  *coreedit.Core
	file  *os.File
	tid   uint32
	want  stack          // with nothing missing
	known map[place]bool // the places of its frames

	tries, changes, words int
}

func (h *holes) walk(s *Session) (st stack) {
	st.frames, st.stop = s.NewWalker().Walk(nil, threadOf(h.t, s, h.tid))
	return st
}

// touched returns the pages that are read.
func (h *holes) touched() []arch.Span {
	p, err := loader.Open(h.file.Name(), &loader.Options{Track: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer p.Close()
	h.walk(Open(p, nil))
	return p.Memory.Touched()
}

// try takes n bytes at a out of the dump.
func (h *holes) try(a arch.Addr, n uint64) {
	h.tries++
	c := h.core.Holes()
	c.Hole(uint64(a), n)
	if err := c.WriteHoles(h.file); err != nil {
		h.t.Fatal(err)
	}
	changed, told := false, false
	openPath(h.t, h.file.Name(), func(s *Session) {
		changed, told = h.check(s, arch.Span{Lo: a, Hi: a + arch.Addr(n)}), len(s.Warnings) > 0
	})
	switch {
	case !changed:
		return
	case told && n <= 1024:
		// In the text of the contract, of which every byte counts, for the
		// same reason.
	case n > 8:
		h.try(a, n/2)
		h.try(a+arch.Addr(n/2), n/2)
	default:
		h.words++
	}
	h.changes++
}

// piece is how far from a missing word the address may be that names it: unwind
// codes are missing as a whole.
const piece = 64

// check compares the walk with that of the whole dump, and reports whether it
// is another.
func (h *holes) check(s *Session, hole arch.Span) (changed bool) {
	got := h.walk(s)
	k := 0
	for k < len(got.frames) && k < len(h.want.frames) && placeOf(&got.frames[k]) == placeOf(&h.want.frames[k]) && got.frames[k].Kind != Gap {
		// That code is managed cannot be told without the runtime's map;
		// ReadyToRun code is left by its image's table all the same.
		changed = changed || got.frames[k].Kind != h.want.frames[k].Kind
		k++
	}
	why := got.stop
	switch {
	case k == len(got.frames) && k == len(h.want.frames) && got.stop == h.want.stop:
		return changed
	case k == len(got.frames) && got.stop.Reason.Complete():
		h.t.Errorf("without %v: the stack claims to be complete after %d frames", hole, k)
	case k < len(got.frames) && got.frames[k].Kind != Gap:
		h.t.Errorf("without %v: frame %d is %v, want %v", hole, k, placeOf(&got.frames[k]), placeOf(&h.want.frames[k]))
	case k < len(got.frames):
		why = got.frames[k].Why
	}
	if len(s.Warnings) == 0 && (why.At+piece < hole.Lo || why.At >= hole.Hi+piece) {
		h.t.Errorf("without %v: after %d frames it says %v at %v", hole, k, why.Reason, why.At)
	}
	for i := k; i < len(got.frames); i++ {
		f := &got.frames[i]
		if f.Kind == Gap || h.known[placeOf(f)] {
			continue
		}
		// What an InlinedCallFrame holds is corrected by the return address
		// on the stack. Without that it stands as it is. The saved frame
		// pointer is a guess, wrong in a method that was replaced on the stack.
		if f.By != unwind.ByFramePointer && (f.By != unwind.ByExplicitFrame || !h.called(f.PC.Addr)) {
			h.t.Errorf("without %v: frame %d, %v by %v, is none", hole, i, placeOf(f), f.By)
		}
	}
	return true
}

// called reports whether a frame of the whole stack has this pc, or one behind
// the next call: an InlinedCallFrame may hold that of the call before.
func (h *holes) called(pc arch.Addr) bool {
	for p := range h.known {
		if pc <= p.pc && p.pc-pc <= maxCallApart {
			return true
		}
	}
	return false
}
