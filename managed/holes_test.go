package managed

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

var everyHole = flag.Bool("holes", false, "TestEveryHole: take every word of the shipped dumps, and not a sample")

// TestEveryHole takes out of a dump, one after the other, each page that opening
// it and walking its stacks read, and where that changes an answer each half of
// the page, down to every single word that counts. Whatever is missing, all that
// is still said must be true: frames, stack pointers, names, IL offsets, marks of
// funclets and exceptions are those of the whole dump or not known, frames come
// in order, and where one is lost a gap or the stop stands in front of it.
//
// Without -holes it takes a sample of the pages: the whole takes some minutes.
func TestEveryHole(t *testing.T) {
	for _, fixture := range fixtures {
		t.Run(fixture, func(t *testing.T) {
			h := &holes{t: t, core: editable(t, fixture)}
			openEdit(t, h.core, func(s *Session) { h.want = answersOf(s) })
			if len(h.want) == 0 {
				t.Fatal("no thread")
			}
			pages := h.touched()
			if !*everyHole {
				rnd := rand.New(rand.NewPCG(1, uint64(len(pages))))
				rnd.Shuffle(len(pages), func(i, k int) { pages[i], pages[k] = pages[k], pages[i] })
				pages = pages[:min(len(pages), 12)]
			}
			h.run(pages)
			t.Logf("%d pages, %d holes, of which %d change an answer; %d words count", len(pages), h.tries, h.changes, h.words)
			if h.words < len(pages) {
				t.Errorf("only %d words count", h.words)
			}
		})
	}
}

// An answer is what is said of one thread.
type answer struct {
	frames    []told
	stop      unwind.Stop
	exception *code.Exception
}

// A told is what is said of one frame.
type told struct {
	place
	gap      bool
	exact    bool
	by       unwind.By
	id       arch.Addr
	token    uint32
	function string
	name     string
	il       int64 // -1: not known
	managed  bool
	code     code.Code
}

// answersOf walks and describes all threads.
func answersOf(s *Session) map[uint32]*answer {
	out := map[uint32]*answer{}
	w := s.NewWalker()
	type key struct {
		pc   arch.PC
		code code.Code
	}
	known := map[key]told{}
	for i := range s.Process.Threads {
		th := &s.Process.Threads[i]
		a := &answer{}
		if m, rt := s.Thread(th.ID); m != nil {
			a.exception = rt.(code.Throwing).InFlight(m)
		}
		for ok := w.Start(th); ok; ok = w.Next() {
			f := w.Frame()
			k := key{f.PC, f.Code}
			d, ok := known[k]
			if !ok {
				d = told{exact: f.PC.Exact, managed: f.Kind == Managed, code: f.Code, il: -1}
				if d.managed {
					m, _ := f.Runtime.Describe(&f.Code)
					d.id, d.token, d.name, d.function = f.Code.Method, m.Token, m.Name, symbolize.Managed(&m)
					if il, ok := f.Runtime.(code.Mapping).ILOffset(f.PC); ok {
						d.il = int64(il)
					}
				}
				known[k] = d
			}
			d.place, d.by, d.gap = placeOf(f), f.By, f.Kind == Gap
			a.frames = append(a.frames, d)
		}
		a.stop = w.Stop()
		out[th.ID] = a
	}
	return out
}

type holes struct {
	t    *testing.T
	core *coreedit.Core
	want map[uint32]*answer // with nothing missing

	mu                           sync.Mutex
	tries, changes, words, wrong int
}

// touched returns the pages that are read.
func (h *holes) touched() (pages []arch.Addr) {
	path := filepath.Join(h.t.TempDir(), "core")
	if err := os.WriteFile(path, h.core.Bytes(), 0o600); err != nil {
		h.t.Fatal(err)
	}
	p, err := loader.Open(path, &loader.Options{Track: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer p.Close()
	answersOf(Open(p, nil))
	for _, sp := range p.Memory.Touched() {
		for a := sp.Lo; a < sp.Hi; a += 4096 {
			pages = append(pages, a)
		}
	}
	return pages
}

// run takes each page out, on two goroutines.
func (h *holes) run(pages []arch.Addr) {
	jobs := make(chan arch.Addr)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			f, err := os.Create(filepath.Join(h.t.TempDir(), "core"))
			if err == nil {
				defer f.Close()
				_, err = f.Write(h.core.Bytes())
			}
			if err != nil {
				h.t.Error(err)
			}
			for a := range jobs {
				if err == nil {
					h.try(f, a, 4096)
				}
			}
		})
	}
	for _, a := range pages {
		jobs <- a
	}
	close(jobs)
	wg.Wait()
}

// try takes n bytes at a out of the dump in file.
func (h *holes) try(file *os.File, a arch.Addr, n uint64) {
	c := h.core.Holes()
	c.Hole(uint64(a), n)
	if err := c.WriteHoles(file); err != nil {
		h.t.Error(err)
		return
	}
	p, err := loader.Open(file.Name(), nil)
	if err != nil {
		h.t.Errorf("without %v+%d: %v", a, n, err)
		return
	}
	s := Open(p, nil)
	got := answersOf(s)
	changed, told := false, len(s.Warnings) > 0
	for tid, want := range h.want {
		g := got[tid]
		if g == nil {
			h.say("without %v+%d: thread %d is not there", a, n, tid)
			continue
		}
		c, bad := want.judge(g)
		changed = changed || c
		if bad != "" {
			h.say("without %v+%d: thread %d: %s", a, n, tid, bad)
		}
	}
	p.Close()
	h.mu.Lock()
	h.tries++
	if changed {
		h.changes++
		if n == 8 {
			h.words++
		}
	}
	h.mu.Unlock()
	// Of the text of the contract every byte counts, for the same reason.
	if changed && n > 8 && !(told && n <= 1024) {
		h.try(file, a, n/2)
		h.try(file, a+arch.Addr(n/2), n/2)
	}
}

// maxSaid bounds the wrong answers that are printed.
const maxSaid = 40

func (h *holes) say(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wrong++; h.wrong <= maxSaid {
		h.t.Errorf(format, args...)
	} else {
		h.t.Fail()
	}
}

// judge holds got against the whole answer, and reports whether it is another,
// and what of it is not true.
func (want *answer) judge(got *answer) (changed bool, wrong string) {
	if got.stop != want.stop || len(got.frames) != len(want.frames) {
		changed = true
	}
	if w, g := want.exception, got.exception; g != nil && (w == nil || !reflect.DeepEqual(g, w)) {
		if changed = true; w == nil || !lessException(g, w) {
			return true, fmt.Sprintf("the exception is %+v, was %+v", g, w)
		}
	} else if g == nil && w != nil {
		changed = true
	}
	places, pcs := map[place]int{}, map[arch.Addr][]int{}
	for i := range want.frames {
		f := &want.frames[i]
		places[f.place] = i
		pcs[f.pc] = append(pcs[f.pc], i)
	}
	last, gap, gaps := -1, false, false
	for i := range got.frames {
		g := &got.frames[i]
		if g.gap {
			gap, gaps = true, true
			continue
		}
		if len(pcs[g.pc]) == 0 {
			return true, fmt.Sprintf("frame %d, %v by %v, is none", i, g.place, g.by)
		}
		k, ok := places[g.place]
		if g.sp == 0 {
			for _, k = range pcs[g.pc] {
				if ok = k > last; ok {
					break
				}
			}
		} else if !ok {
			return true, fmt.Sprintf("frame %d, %v by %v, has the stack pointer %v, was %v", i, g.pc, g.by, g.sp, want.frames[pcs[g.pc][0]].sp)
		}
		if !ok || k <= last {
			return true, fmt.Sprintf("frame %d, %v by %v, is out of order", i, g.place, g.by)
		}
		if k > last+1 && !gap {
			return true, fmt.Sprintf("%d frames are lost without a gap before %v", k-last-1, g.place)
		}
		last, gap = k, false
		if w := &want.frames[k]; *g != *w {
			changed = true
			if bad := w.differs(g); bad != "" {
				return true, fmt.Sprintf("frame %d, %v: %s", i, g.pc, bad)
			}
		}
	}
	if last+1 != len(want.frames) && !gap && got.stop.Reason.Complete() {
		return true, fmt.Sprintf("the stack claims to be complete after %d of %d frames", last+1, len(want.frames))
	}
	return changed || gaps, ""
}

// differs says what g has that is not true of w.
func (w *told) differs(g *told) string {
	switch {
	case g.exact && !w.exact: // not the reverse: on ARM64 only a Frame tells that a handler's caller has faulted
		return "it was interrupted"
	case g.id != 0 && w.id != 0 && g.id != w.id:
		return fmt.Sprintf("it is method %v, was %v", g.id, w.id)
	case g.token != 0 && w.token != 0 && g.token != w.token:
		return fmt.Sprintf("its token is %#x, was %#x", g.token, w.token)
	case !lessName(g.function, w.function) || !lessName(g.name, w.name):
		return fmt.Sprintf("its name is %q %q, was %q %q", g.function, g.name, w.function, w.name)
	case g.il >= 0 && g.il != w.il:
		return fmt.Sprintf("its IL offset is %d, was %d", g.il, w.il)
	case g.code.FuncletKnown && w.code.FuncletKnown && g.code.Funclet != w.code.Funclet:
		return fmt.Sprintf("funclet is %v, was %v", g.code.Funclet, w.code.Funclet)
	}
	return ""
}

// unknownPart is what stands in a name for what is not known.
var unknownPart = regexp.MustCompile(`!!?\d+|\?`)

// lessName reports whether got is all of the name want, or less of it: without
// parameters, or with ? for what is not known.
func lessName(got, want string) bool {
	if plain, _, _ := strings.Cut(want, "("); got == "" || got == want || got == plain {
		return true
	}
	parts := unknownPart.Split(got, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return len(parts) > 1 && regexp.MustCompile("^(?s:"+strings.Join(parts, ".*")+")$").MatchString(want)
}

// lessException reports whether got is what is known of want, or less, and says so.
func lessException(got, want *code.Exception) bool {
	if got.Address == 0 {
		return reflect.DeepEqual(*got, code.Exception{Lacks: code.LackParts})
	}
	if got.Address != want.Address || !lessName(got.Type, want.Type) ||
		got.HasMessage && got.Message != want.Message || got.HasHResult && got.HResult != want.HResult {
		return false
	}
	if len(got.All) > len(want.All) || len(got.All) < len(want.All) && got.Lacks&code.LackAll == 0 {
		return false
	}
	switch {
	case got.Inner != nil:
		if want.Inner == nil || !lessException(got.Inner, want.Inner) {
			return false
		}
	case want.Inner != nil && got.Lacks&code.LackInner == 0:
		return false
	}
	if len(got.Trace) > len(want.Trace) || len(got.Trace) < len(want.Trace) && got.Lacks&code.LackTrace == 0 {
		return false
	}
	for i, f := range got.Trace {
		w := want.Trace[i]
		if f.Code.Kind == code.NotManaged {
			w.Code = code.Code{Method: w.Code.Method}
		}
		if f.PC != w.PC || f.SP != w.SP || f.Rethrown != w.Rethrown || f.Code.Method != w.Code.Method {
			return false
		}
	}
	return true
}
