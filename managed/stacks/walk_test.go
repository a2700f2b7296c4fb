package stacks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
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

// A panic on the way to a stack is an error of that thread, and the others come
// all the same: it must not end the program that looks at the dump.
func TestPanic(t *testing.T) {
	s := fixture(t, "net10-hello")
	for _, n := range []int{1, 4} {
		threads := append(inOrder(s)[:2:2], nil) // no thread: a nil pointer
		threads = append(threads, inOrder(s)[2:]...)
		stacks, came := Of(s, &Options{Workers: n}), 0
		var failed []int
		stacks.each(threads, func(th *Thread, err error) bool {
			if err != nil {
				failed = append(failed, came)
			} else if !th.Whole() {
				t.Errorf("%v: %v", th, th.Stop)
			}
			came++
			return true
		})
		if came != len(threads) || !slices.Equal(failed, []int{2}) {
			t.Errorf("%d workers: of %d threads %d came, and %v failed", n, len(threads), came, failed)
		}
		came = 0
		err := stacks.Each(threads, func(*Thread) error { came++; return nil })
		var p *PanicError
		if !errors.As(err, &p) || came != 2 || !strings.Contains(string(p.Stack), "walk") {
			t.Errorf("%d workers: %v after %d threads", n, err, came)
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
