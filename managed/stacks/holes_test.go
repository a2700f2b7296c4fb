package stacks

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

var holes = flag.Int("holes", 60, "how many holes TestNameHoles makes in each dump; 0: one for each page and word that it chooses")

// A spot is where a frame stands. Two frames of a thread never share one.
type spot struct {
	tid uint32
	pc  arch.PC
	sp  arch.Addr
}

// told is what is said of each managed frame, and of each thread's exception.
type told struct {
	frames     map[spot]*Place
	exceptions map[uint32]*Exception
}

func tell(t *testing.T, path string, track bool) (out told, touched []arch.Span) {
	t.Helper()
	p, err := loader.Open(path, &loader.Options{Track: track})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := managed.Open(p, nil)
	b := Of(s, &Options{NoSymbols: true})
	out = told{map[spot]*Place{}, map[uint32]*Exception{}}
	w := s.NewWalker()
	for i := range p.Threads {
		th := &p.Threads[i]
		frames, stop := w.Walk(nil, th)
		st := b.Describe(th, frames, stop)
		out.exceptions[st.TID] = st.Exception
		for _, f := range st.Frames {
			if f.Kind == Managed {
				out.frames[spot{st.TID, f.PC, f.SP}] = f.Place
			}
		}
	}
	if track {
		touched = p.Memory.Touched()
	}
	return out, touched
}

// TestNameHoles takes pages and single words out of the shipped dumps, of those
// that are read for stacks and names. Whatever is missing, what is said of a
// frame and of an exception is that of the whole dump, or less of it.
func TestNameHoles(t *testing.T) {
	dumps, err := filepath.Glob("../../testdata/dumps/*/core.zst")
	if err != nil || len(dumps) == 0 {
		t.Fatal("no dumps", err)
	}
	for _, dump := range dumps {
		t.Run(filepath.Base(filepath.Dir(dump)), func(t *testing.T) {
			t.Parallel()
			core, err := coreedit.Read(dump)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Create(filepath.Join(t.TempDir(), "core"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.Write(core.Bytes()); err != nil {
				t.Fatal(err)
			}
			whole, touched := tell(t, file.Name(), true)
			spans, less := holesIn(touched), 0
			for _, hole := range spans {
				c := core.Holes()
				c.Hole(uint64(hole.Lo), uint64(hole.Hi-hole.Lo))
				if err := c.WriteHoles(file); err != nil {
					t.Fatal(err)
				}
				got, _ := tell(t, file.Name(), false)
				n := 0
				for at, w := range whole.frames {
					if g := got.frames[at]; g == nil {
						n++
					} else if wrong := wrongPlace(g, w); wrong != "" {
						t.Errorf("without %v: thread %d, %v: %s", hole, at.tid, at.pc.Addr, wrong)
					} else if g.Function != w.Function {
						n++
					}
				}
				for tid, w := range whole.exceptions {
					if wrong := wrongException(got.exceptions[tid], w); wrong != "" {
						t.Errorf("without %v: thread %d: %s", hole, tid, wrong)
					}
				}
				if n > 0 {
					less++
				}
			}
			t.Logf("%d holes, %d of them change what is said of %d frames", len(spans), less, len(whole.frames))
		})
	}
}

// holesIn chooses pages, and a word of each, to be taken out of what was read.
func holesIn(touched []arch.Span) (spans []arch.Span) {
	rnd := rand.New(rand.NewSource(1))
	for _, sp := range touched {
		for a := sp.Lo; a < sp.Hi; a += 4096 {
			word := a + arch.Addr(rnd.Intn(512))*8
			spans = append(spans, arch.Span{Lo: a, Hi: a + 4096}, arch.Span{Lo: word, Hi: word + 8})
		}
	}
	rnd.Shuffle(len(spans), func(i, k int) { spans[i], spans[k] = spans[k], spans[i] })
	if *holes > 0 {
		spans = spans[:min(len(spans), *holes)]
	}
	return spans
}

// wrongPlace says what of g is not w, nor less of it; "" if nothing is.
func wrongPlace(g, w *Place) string {
	switch a, b := g.Method, w.Method; {
	case !lessOf(g.Function, w.Function):
		return fmt.Sprintf("function %q, was %q", g.Function, w.Function)
	case !lessOf(g.Module, w.Module) && g.Module != strings.TrimSuffix(w.Module, filepath.Ext(w.Module)):
		return fmt.Sprintf("module %q, was %q", g.Module, w.Module)
	case !lessOf(a.Name, b.Name):
		return fmt.Sprintf("name %q, was %q", a.Name, b.Name)
	case a.ID != 0 && b.ID != 0 && a.ID != b.ID, a.Token != 0 && b.Token != 0 && a.Token != b.Token:
		return fmt.Sprintf("method %v %#x, was %v %#x", a.ID, a.Token, b.ID, b.Token)
	case a.ILOffset >= 0 && b.ILOffset >= 0 && a.ILOffset != b.ILOffset:
		return fmt.Sprintf("IL offset %d, was %d", a.ILOffset, b.ILOffset)
	case g.Function != "" && w.Function != "" && g.Offset != w.Offset:
		return fmt.Sprintf("offset %#x, was %#x", g.Offset, w.Offset)
	case a.FuncletKnown && b.FuncletKnown && a.Funclet != b.Funclet:
		return fmt.Sprintf("funclet %v, was %v", a.Funclet, b.Funclet)
	}
	return ""
}

func wrongException(g, w *Exception) string {
	if g == nil || w == nil {
		return "" // of a Thread object that is not there
	}
	if g.Type != "" && g.Type != w.Type || g.HasMessage && (!w.HasMessage || g.Message != w.Message) || g.Address != 0 && g.Address != w.Address {
		return fmt.Sprintf("exception %+v, was %+v", *g, *w)
	}
	return ""
}

// unknownPart is what stands for a part of a name that is not known; !0 is a
// generic parameter without its name.
var unknownPart = regexp.MustCompile(`!!?\d+|\?`)

// lessOf reports whether got is want, or less of it, or nothing.
func lessOf(got, want string) bool {
	// A stub's name without parentheses says nothing of parameters.
	before, _, _ := strings.Cut(want, "(")
	if got == "" || got == want || want == "" || got == before && strings.HasPrefix(got, "dynamicClass.") {
		return true
	}
	parts := unknownPart.Split(got, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(want)
}
