package stacks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
)

// fixture opens one of the dumps that ship with the tests.
func fixture(t *testing.T, name string) *managed.Session {
	t.Helper()
	p, err := loader.Open(filepath.Join("..", "..", "testdata", "dumps", name, "core.zst"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return managed.Open(p, nil)
}

// inOrder returns the threads of s in the order of the dump.
func inOrder(s *managed.Session) (threads []*loader.Thread) {
	for i := range s.Process.Threads {
		threads = append(threads, &s.Process.Threads[i])
	}
	return threads
}

// page writes down all that is said of a thread.
func page(th *Thread) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %+v %v\n", th, th.Omitted, th.Stop)
	for i := range th.Frames {
		f := &th.Frames[i]
		fmt.Fprintf(&b, "%v %v %v %s %s %v %+v\n", f.PC, f.SP, f.By, f.Kind, f.Module, f, f.Method)
	}
	return b.String()
}

// Stacks are the same from one goroutine as from several, which use the room of
// stacks that were handed out again, and the same as each described for itself.
func TestEach(t *testing.T) {
	for _, name := range []string{"net10-scenarios", "net10-busy-a", "net10-crash-kernel"} {
		s := fixture(t, name)
		alone := Of(s, nil)
		want, w := "", s.NewWalker()
		for _, th := range inOrder(s) {
			frames, stop := w.Walk(nil, th)
			want += page(alone.Describe(th, frames, stop))
		}
		for _, n := range []int{1, 2, 8} {
			together, got := Of(s, &Options{Workers: n}), ""
			if err := together.Each(inOrder(s), func(th *Thread) error { got += page(th); return nil }); err != nil {
				t.Error(err)
			}
			if got != want {
				t.Errorf("%s: %d goroutines give other stacks", name, n)
			}
			if a, b := alone.Summary(), together.Summary(); a.Counts != b.Counts || !slices.Equal(a.Missing, b.Missing) {
				t.Errorf("%s: %d goroutines give another summary: %+v, not %+v", name, n, b, a)
			}
			broken, seen := errors.New("no room"), 0
			err := together.Each(inOrder(s), func(*Thread) error { seen++; return broken })
			if !errors.Is(err, broken) || seen != 1 {
				t.Errorf("%s: %v after %d stacks", name, err, seen)
			}
			for range together.All() {
				break // must leave no goroutine behind that waits
			}
		}
	}
}

// A limit leaves frames out of stacks, and nothing else changes.
func TestLimit(t *testing.T) {
	s := fixture(t, "net10-scenarios")
	whole, cut := Of(s, nil), Of(s, &Options{Limit: 3})
	var want []*Thread
	for th, err := range whole.All() {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, th.Clone())
	}
	i := 0
	for th, err := range cut.All() {
		if err != nil {
			t.Fatal(err)
		}
		w := want[i]
		if i++; th.TID != w.TID || th.Stop != w.Stop || len(th.Frames)+th.Omitted.Frames+th.Omitted.Gaps != len(w.Frames) || len(th.Frames) < min(3, len(w.Frames)) {
			t.Errorf("%v: %d frames, %+v left out; was %d frames", th, len(th.Frames), th.Omitted, len(w.Frames))
		}
		for k := range th.Frames {
			if a, b := th.Frames[k].String(), w.Frames[k].String(); a != b {
				t.Errorf("%v: frame %d is %s, was %s", th, k, a, b)
			}
		}
	}
	if a, b := whole.Summary(), cut.Summary(); i != len(want) || a.Counts != b.Counts || a.Counts.Frames == 0 {
		t.Errorf("%d threads of %d; %+v, was %+v", i, len(want), b.Counts, a.Counts)
	}
}

// The thread that the dump was made for comes first, the others as they are in
// the dump.
func TestCrashInFront(t *testing.T) {
	s := fixture(t, "net10-scenarios")
	tids := func() (list []uint32) {
		for _, th := range Of(s, nil).Threads() {
			list = append(list, th.ID)
		}
		return list
	}
	plain := tids()
	s.Process.Crash = &loader.Crash{Thread: plain[3]}
	want := slices.Concat(plain[3:4], plain[:3], plain[4:])
	if got := tids(); !slices.Equal(got, want) {
		t.Errorf("%v crashed: %v, want %v", plain[3], got, want)
	}
	for th, err := range Of(s, nil).All() {
		if err != nil || !th.Crashed || th.TID != plain[3] {
			t.Errorf("the first is %v, %v", th, err)
		}
		break
	}
}

// A broken is a runtime that knows one pc, and panics when it is asked for the
// name of the method.
type broken struct{ pc arch.Addr }

func (b broken) Info() code.Info { return code.Info{Kind: "broken"} }

func (b broken) Lookup(pc arch.Addr) (c code.Code, missing arch.Addr) {
	if pc == b.pc || pc+1 == b.pc { // walks look inside of the call
		c = code.Code{Kind: code.JIT, Method: 1, Start: b.pc - 1, Body: arch.Span{Lo: b.pc - 1, Hi: b.pc + 1}}
	}
	return c, 0
}

func (b broken) Describe(*code.Code) (code.Method, error) { panic("a defect") }

// A panic on the way to a stack is an error of that thread, and the others come
// all the same: it must not end the program that looks at the dump.
func TestPanic(t *testing.T) {
	whole := Of(fixture(t, "net10-hello"), nil)
	var tid uint32
	var pc arch.Addr // of a frame that no other thread has
	before := 0
	for th := range whole.All() {
		for _, f := range th.Frames {
			if f.Function == "NativeDeep" {
				tid, pc = th.TID, f.PC.Addr
			}
		}
		if tid == 0 {
			before++
		}
	}
	if tid == 0 || before == 0 {
		t.Fatal("no thread is to fail, or none before it is not")
	}
	find := func(*loader.Process) ([]code.Runtime, []loader.Warning) { return []code.Runtime{broken{pc}}, nil }
	s := managed.Open(whole.Session().Process, &managed.Options{Runtimes: []code.Finder{find}})
	for _, n := range []int{1, 4} {
		stacks, came := Of(s, &Options{Workers: n}), 0
		for th, err := range stacks.All() {
			var p *PanicError
			switch {
			case came == before:
				if !errors.As(err, &p) || p.TID != tid || p.Value != "a defect" || !strings.Contains(string(p.Stack), "Describe") {
					t.Errorf("%d workers: the thread that fails is %v, %v", n, th, err)
				}
			case err != nil || !th.Whole():
				t.Errorf("%d workers: %v, %v", n, th, err)
			}
			came++
		}
		if came != len(s.Process.Threads) {
			t.Errorf("%d workers: %d threads of %d came", n, came, len(s.Process.Threads))
		}
		came = 0
		err := stacks.Each(stacks.Threads(), func(*Thread) error { came++; return nil })
		if p := (*PanicError)(nil); !errors.As(err, &p) || came != before {
			t.Errorf("%d workers: %v after %d threads", n, err, came)
		}
		groups, err := stacks.Groups()
		if p := (*PanicError)(nil); !errors.As(err, &p) || len(groups) == 0 {
			t.Errorf("%d workers: %d groups, %v", n, len(groups), err)
		}
		if err := stacks.Each([]*loader.Thread{nil}, func(*Thread) error { return nil }); err == nil {
			t.Errorf("%d workers: no thread is no error", n)
		}
	}
}

// What is asked of a process that was closed is less, and no panic.
func TestClosed(t *testing.T) {
	s := fixture(t, "net10-scenarios")
	stacks := Of(s, nil)
	before := 0
	for th := range stacks.All() {
		before += len(th.Frames)
		if th.TID == s.Process.Threads[4].ID {
			s.Process.Close() // under way
		}
	}
	if before == 0 {
		t.Error("nothing before it was closed")
	}
	for th, err := range Of(s, nil).All() {
		if err != nil || len(th.Frames) != 0 || th.Stop.Complete {
			t.Errorf("%v: %v, %d frames, %v", th, err, len(th.Frames), th.Stop)
		}
	}
	th := inOrder(s)[0]
	stacks.Thread(th)
	stacks.Describe(th, []managed.Frame{{Kind: managed.Gap}, {}}, s.NewWalker().Stop())
	stacks.Methods()
	stacks.Images()
	stacks.Summary()
	stacks.Kept()
}

// The dump is cut while its stacks are walked: each is whole, or says that a file
// was lost.
func TestCutWhileWalked(t *testing.T) {
	c, err := coreedit.Read(filepath.Join("..", "..", "testdata", "dumps", "net10-scenarios", "core.zst"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stacks := Of(managed.Open(p, nil), &Options{Workers: 2})
	if err := os.Truncate(path, 1<<16); err != nil {
		t.Skip(err)
	}
	for th, err := range stacks.All() {
		if err != nil {
			t.Error(err)
		} else if th.Stop.Reason == "" {
			t.Errorf("%v: no reason", th)
		}
	}
	stacks.Methods()
	stacks.Images()
	if warns := stacks.Summary().Warnings; !slices.ContainsFunc(warns, func(w Warning) bool { return w.Code == "file_lost" }) {
		t.Errorf("no warning says that the dump was cut: %v", warns)
	}
}
