package profiler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// TestReplayHoles takes out of the shipped dumps each page that the replay of
// all threads reads, and where that changes an answer each half of the page,
// down to single words. Whatever is missing: a call answers as it does over the
// whole dump, or it says which byte it lacks, after callbacks that are the
// first of the whole dump's; a seed is the whole dump's, or there is none. Without -holes
// it looks at some threads, every one with an exception among them, and
// takes some of the pages apart.
func TestReplayHoles(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newReplayHoles(t, editable(t, name)).run(11)
		})
	}
}

// TestReplayHolesOlder does the same with recorded dumps of .NET 9 and 8. In half of
// them nobody has looked for the callers of helpers.
func TestReplayHolesOlder(t *testing.T) {
	for _, c := range []struct {
		name string
		lazy bool
		step int // of pages
	}{
		{"net9-transitions-x64", true, 13}, {"net8-transitions-x64", false, 13},
		{"net9-seeds-x64", false, 29}, {"net8-seeds-x64", true, 29},
		{"net9-scenarios-x64", false, 61}, {"net8-scenarios-x64", true, 61},
		{"net9-elt-slow-x64", true, 61},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			core, err := coreedit.Read(corpus.Path(t, c.name, dumpOf(c.name)))
			if err != nil {
				t.Fatal(err)
			}
			if c.lazy {
				openEdit(t, core, func(s *managed.Session) {
					for _, list := range helperFrames(s) {
						for _, f := range list {
							if err := core.SetWord(uint64(f+helperRetAddr), 0); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			newReplayHoles(t, core).run(c.step)
		})
	}
}

// run takes every page of step away, or all of them with -holes.
func (h *replayHoles) run(step int) {
	for i, page := range h.pages {
		if *everyHole || i%step == 0 {
			h.try(page, 4096)
		}
	}
	h.t.Logf("%d pages are read; %d holes, of which %d change an answer; %d words count", len(h.pages), h.tries, h.changes, h.words)
}

// piece is how far from a missing word the address may be that names it: unwind
// codes are missing as a whole.
const piece = 64

type replayHoles struct {
	t     *testing.T
	core  *coreedit.Core
	file  *os.File
	seeds map[uint32][]byte // CONTEXTs by thread, of the whole dump
	some  map[uint32]bool   // the threads that are replayed
	want  []replayed
	pages []arch.Addr

	tries, changes, words int
}

// A replayed is what a call or a search for a seed gave.
type replayed struct {
	what   string
	calls  []answeredCall
	hr     HRESULT
	why    Why
	search *SeedSearch // nil for a call
}

type answeredCall struct {
	fn    FunctionID
	ip    arch.Addr
	flags uint32
	regs  arch.Regs
}

func newReplayHoles(t *testing.T, core *coreedit.Core) *replayHoles {
	h := &replayHoles{t: t, core: core, seeds: map[uint32][]byte{}, some: map[uint32]bool{}}
	var err error
	if h.file, err = os.Create(filepath.Join(t.TempDir(), "core")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.file.Close() })
	if _, err := h.file.Write(core.Bytes()); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(h.file.Name(), &loader.Options{Track: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := managed.Open(p, nil)
	n := snapshotter(t, s)
	for i := range p.Threads {
		m, _ := s.Thread(p.Threads[i].ID)
		h.some[p.Threads[i].ID] = *everyHole || i%12 == 0 || m != nil && m.Exception != 0
		if f := n.FindSeed(&p.Threads[i]); f.Seed != nil {
			h.seeds[p.Threads[i].ID] = f.Seed.Context
		}
	}
	h.want = h.answers(n)
	for _, sp := range p.Memory.Touched() {
		for a := sp.Lo; a < sp.Hi; a += 4096 {
			h.pages = append(h.pages, a)
		}
	}
	return h
}

// answers replays every thread's walk, without and with a seed, and searches
// its seed.
func (h *replayHoles) answers(n *Snapshotter) (out []replayed) {
	for i := range n.s.Process.Threads {
		t := &n.s.Process.Threads[i]
		if !h.some[t.ID] {
			continue
		}
		f := n.FindSeed(t)
		out = append(out, replayed{what: fmt.Sprintf("seed of %d", t.ID), search: &f})
		for _, seed := range [][]byte{nil, h.seeds[t.ID]} {
			a := replayed{what: fmt.Sprintf("walk of %d, seed %v", t.ID, seed != nil)}
			a.hr = n.Do(Request{TID: t.ID, Flags: COR_PRF_SNAPSHOT_REGISTER_CONTEXT, Context: seed}, func(c Call) HRESULT {
				k := answeredCall{fn: c.Function, ip: c.IP}
				b, _ := c.Context()
				k.flags = n.ctx.read(b, &k.regs)
				a.calls = append(a.calls, k)
				return S_OK
			})
			a.why = n.why
			out = append(out, a)
		}
	}
	return out
}

// try takes n bytes at a out of the dump.
func (h *replayHoles) try(a arch.Addr, n uint64) {
	h.tries++
	c := h.core.Holes()
	c.Hole(uint64(a), n)
	if err := c.WriteHoles(h.file); err != nil {
		h.t.Fatal(err)
	}
	changed, told := false, false
	openPath(h.t, h.file.Name(), func(s *managed.Session) {
		if told = len(s.Runtimes) == 0; told {
			if changed = true; len(s.Warnings) == 0 {
				h.t.Errorf("without %v: no runtime, and no warning", a)
			}
			return
		}
		changed = h.check(snapshotter(h.t, s), arch.Span{Lo: a, Hi: a + arch.Addr(n)})
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

// check compares the answers with those of the whole dump, and reports whether
// one is another.
func (h *replayHoles) check(n *Snapshotter, hole arch.Span) (changed bool) {
	wrong := func(want *replayed, format string, args ...any) {
		h.t.Errorf("without %v: %s: %s", hole, want.what, fmt.Sprintf(format, args...))
	}
	for i, got := range h.answers(n) {
		want := &h.want[i]
		if got.search != nil {
			if c, text := sameSearch(got.search, want.search); text != "" {
				wrong(want, "%s", text)
			} else if c {
				changed = true
			}
			continue
		}
		// A core of the kernel's does not tell that a hole was mapped.
		told := got.hr == E_UNEXPECTED && (got.why.Missing || got.why.Dies)
		whole := len(got.calls) == len(want.calls) && got.hr == want.hr && got.why.Missing == want.why.Missing
		changed = changed || !whole
		for k := range got.calls {
			if k == len(want.calls) || got.calls[k] != want.calls[k] {
				wrong(want, "callback %d of %d: %+v", k, len(want.calls), got.calls[k])
				break
			}
		}
		switch at := got.why.At; {
		case !whole && !told:
			wrong(want, "%d callbacks, want %d, %v %v", len(got.calls), len(want.calls), got.hr, got.why)
		case whole || at == 0 || got.why.Text == unwindTexts[unwindNoName] || slices.Contains(n.rt.Lacks, "ExecutionManagerCodeRangeMapAddress"):
			// Of metadata it is where what was looked for begins, and g_dacTable
			// where nothing bears out that the map of code is what it leads to.
		case at+piece < hole.Lo || at >= hole.Hi+piece:
			wrong(want, "it says %v", got.why)
		}
	}
	return changed
}

// sameSearch compares a search for a seed with that over the whole dump: whether
// it found something else, and text if what it says is wrong.
func sameSearch(got, want *SeedSearch) (changed bool, text string) {
	if got.NeedKnown && got.Needed != want.Needed {
		return true, fmt.Sprintf("needed: %v", got.Needed)
	}
	same := func(a, b *Seed) bool {
		if a == nil || b == nil {
			return a == b
		}
		for r := arch.Reg(0); r < arch.MaxRegs; r++ {
			v, ok := a.Regs.Get(r)
			if w, _ := b.Regs.Get(r); ok && v != w {
				return false
			}
		}
		return a.PC == b.PC && a.SP == b.SP
	}
	if got.Seed == nil && want.Seed != nil && got.Stop.Reason.Complete() {
		return true, fmt.Sprintf("no seed, and the stack is complete: %+v", got.Stop)
	}
	if got.Seed != nil && !same(got.Seed, want.Seed) {
		return true, fmt.Sprintf("another seed: %+v, want %+v", got.Seed, want.Seed)
	}
	if got.DocumentedKnown && !same(got.Documented, want.Documented) {
		return true, fmt.Sprintf("documented: %+v, want %+v", got.Documented, want.Documented)
	}
	return got.Seed == nil && want.Seed != nil || got.NeedKnown != want.NeedKnown || got.DocumentedKnown != want.DocumentedKnown, ""
}

// dumpOf returns the name of the dump of a recorded case.
func dumpOf(name string) string {
	if strings.Contains(name, "-scenarios-") {
		return "normal.zst"
	}
	return "dump.zst"
}
