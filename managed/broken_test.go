package managed

import (
	"bytes"
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
	"github.com/seamwalk/seam/managed/code"
)

// Offsets of .NET 10.0.12 on x86-64 Linux, by its contract descriptor; the
// hijack's words lie behind the link (see package clr).
const (
	threadState  = 0
	threadFrame  = 8
	threadLink   = 112
	threadOSID   = 296
	hijackReturn = threadLink + 40
	hijackSlot   = threadLink + 48
	frameNext    = 8
	sectionHeap  = 40 // RangeSection.HeapList
	heapMap      = 40 // CodeHeapListNode.HeaderMap
)

// A victim is a fixture about to be damaged: the session of the whole dump,
// its stacks, and its managed threads in the order of the ThreadStore.
type victim struct {
	t       *testing.T
	s       *Session
	stacks  []stack
	threads []*code.Thread
}

func newVictim(t *testing.T, name string) *victim {
	v := &victim{t: t, s: openFixture(t, name)}
	v.stacks = walkAll(v.s)
	list, warns := coreclr(v.s).Threads()
	if len(warns) > 0 {
		t.Fatal(warns)
	}
	for i := range list {
		v.threads = append(v.threads, &list[i])
	}
	return v
}

// stack returns the whole stack of a thread.
func (v *victim) stack(tid uint32) *stack {
	for i := range v.stacks {
		if v.s.Process.Threads[i].ID == tid {
			return &v.stacks[i]
		}
	}
	v.t.Fatalf("no thread %d", tid)
	return nil
}

// compare holds the stacks of a damaged dump against those of the whole one:
// each is the same up to a gap or its stop, and says it is complete only if
// it is. It returns how many are the same to the end.
func (v *victim) compare(s *Session, what string) (same int) {
	w := s.NewWalker()
	for i := range s.Process.Threads {
		th := &s.Process.Threads[i]
		fs, stop := w.Walk(nil, th)
		want := v.stack(th.ID)
		k := 0
		for k < len(fs) && k < len(want.frames) && placeOf(&fs[k]) == placeOf(&want.frames[k]) && fs[k].Kind != Gap {
			k++
		}
		switch {
		case k == len(fs) && k == len(want.frames) && stop == want.stop:
			same++
		case k == len(fs) && stop.Reason.Complete():
			v.t.Errorf("%s: thread %d claims to be complete after %d of %d frames", what, th.ID, k, len(want.frames))
		case k < len(fs) && fs[k].Kind != Gap:
			v.t.Errorf("%s: thread %d has frame %d at %v by %v, want %v", what, th.ID, k, placeOf(&fs[k]), fs[k].By, placeOf(&want.frames[min(k, len(want.frames)-1)]))
		}
	}
	return same
}

func warned(ws []loader.Warning, code string) bool {
	return slices.ContainsFunc(ws, func(w loader.Warning) bool { return w.Code == code })
}

// swap changes text wherever the core holds it. A trimmed one holds the
// contract descriptor's in a note.
func swap(c *coreedit.Core, was, by string) error {
	if c.Replace([]byte(was), []byte(by)) == 0 {
		return fmt.Errorf("the dump does not hold %q", was)
	}
	return nil
}

// fragmentAt finds the RangeSectionFragment that covers pc: next, begin, end,
// and a RangeSection that has begin and end itself.
func fragmentAt(t *testing.T, s *Session, c *coreedit.Core, pc arch.Addr) (fragment, section uint64) {
	t.Helper()
	for _, sp := range touchedBy(t, s) {
		for a := uint64(sp.Lo); a+32 <= uint64(sp.Hi); a += 8 {
			lo, _ := c.Word(a + 8)
			hi, _ := c.Word(a + 16)
			sec, ok := c.Word(a + 24)
			if !ok || uint64(pc) < lo || uint64(pc) >= hi {
				continue
			}
			if l, _ := c.Word(sec &^ 1); l == lo {
				if h, _ := c.Word(sec&^1 + 8); h == hi {
					return a, sec &^ 1
				}
			}
		}
	}
	t.Fatalf("no fragment for %v", pc)
	return 0, 0
}

// touchedBy returns the pages that opening and walking s reads.
func touchedBy(t *testing.T, s *Session) []arch.Span {
	t.Helper()
	p, err := loader.Open(s.Process.Path, &loader.Options{Track: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	walkAll(Open(p, nil))
	return p.Memory.Touched()
}

// TestBrokenRuntime damages what the runtime has in memory. Nothing panics or
// hangs; a warning or the stop says what is wrong; and all that does not hang on
// it is shown.
func TestBrokenRuntime(t *testing.T) {
	v := newVictim(t, "net10-hello")
	whole := len(v.stacks)
	th := v.threads[3]
	tid := uint32(th.OSID)
	st := v.stack(tid)
	jit := slices.IndexFunc(st.frames, func(f Frame) bool { return f.Code.Kind == code.JIT })
	if jit < 0 || th.Frame == code.EndOfFrames {
		t.Fatalf("thread %d: %d frames, the first Frame at %v", tid, len(st.frames), th.Frame)
	}
	// Without this word the walk needs the chain of Frames.
	ret := uint64(st.frames[1].SP) - 8
	fragment, section := fragmentAt(t, v.s, editable(t, "net10-hello"), st.frames[jit].PC.Addr)
	for _, c := range []struct {
		name    string
		edit    func(c *coreedit.Core) error
		warning string // code of one that must be there; "" for none
		same    int    // stacks at least that are as in the whole dump
	}{
		{"a cycle of threads", func(c *coreedit.Core) error {
			return c.SetWord(uint64(v.threads[len(v.threads)-1].Addr)+threadLink, uint64(v.threads[0].Addr)+threadLink)
		}, "threads_cut", whole},
		{"a short cycle of threads", func(c *coreedit.Core) error {
			return c.SetWord(uint64(v.threads[2].Addr)+threadLink, uint64(v.threads[1].Addr)+threadLink)
		}, "threads_cut", whole},
		{"a list of threads into nowhere", func(c *coreedit.Core) error {
			return c.SetWord(uint64(v.threads[1].Addr)+threadLink, 0x10)
		}, "threads_cut", whole},
		{"half a Thread", func(c *coreedit.Core) error { c.Hole(uint64(th.Addr)+threadOSID, 64); return nil }, "threads_cut", whole},
		{"a Thread of another process", func(c *coreedit.Core) error { return c.SetWord(uint64(th.Addr)+threadOSID, 1) }, "", whole},
		{"a Frame that is its own next", func(c *coreedit.Core) error {
			c.Hole(ret, 8)
			return c.SetWord(uint64(th.Frame)+frameNext, uint64(th.Frame))
		}, "", whole - 1},
		{"a Frame chain that turns back", func(c *coreedit.Core) error {
			c.Hole(ret, 8)
			return c.SetWord(uint64(th.Frame)+frameNext, uint64(th.Frame)-64)
		}, "", whole - 1},
		{"a Frame chain into a hole", func(c *coreedit.Core) error {
			c.Hole(ret, 8)
			return c.SetWord(uint64(th.Addr)+threadFrame, 0x7fff_ffff_0000)
		}, "", whole - 1},
		{"a Frame chain out of the address space", func(c *coreedit.Core) error {
			c.Hole(ret, 8)
			return c.SetWord(uint64(th.Addr)+threadFrame, ^uint64(0)-8)
		}, "", whole - 1},
		{"a cycle of fragments", func(c *coreedit.Core) error {
			return errors.Join(c.SetWord(fragment, fragment), c.SetWord(fragment+16, 1))
		}, "", 9},
		{"a range section that overlaps the runtime", func(c *coreedit.Core) error {
			return errors.Join(c.SetWord(fragment+8, 0), c.SetWord(fragment+16, ^uint64(0)))
		}, "", 9},
		{"a code heap out of the address space", func(c *coreedit.Core) error { return c.SetWord(section+sectionHeap, ^uint64(7)) }, "", 9},
		{"an empty nibble map", func(c *coreedit.Core) error {
			heap, _ := c.Word(section + sectionHeap)
			m, _ := c.Word(heap + heapMap)
			n := 0
			for a := m; a < m+1<<17; a += 8 { // what of it is in the dump
				if c.SetWord(a, 0) == nil {
					n++
				}
			}
			if n == 0 {
				return errors.New("no part of the nibble map is in the dump")
			}
			return nil
		}, "", 9},
		{"a code header that points nowhere", func(c *coreedit.Core) error {
			return c.SetWord(uint64(st.frames[jit].Code.Start)-8, 0xdead_0000_0000)
		}, "", 9},
		{"a code header in the midst of a stack", func(c *coreedit.Core) error {
			return c.SetWord(uint64(st.frames[jit].Code.Start)-8, uint64(st.frames[jit].SP))
		}, "", 9},
		{"a descriptor that is no JSON", func(c *coreedit.Core) error {
			return swap(c, `{"version":`, `!"version":`)
		}, "descriptor_unreadable", whole},
		{"a descriptor of an unknown version", func(c *coreedit.Core) error {
			return swap(c, `{"version":0`, `{"version":7`)
		}, "descriptor_unreadable", whole},
		{"a descriptor on an unknown baseline", func(c *coreedit.Core) error {
			return swap(c, `"baseline":"empty"`, `"baseline":"other"`)
		}, "descriptor_unreadable", whole},
		{"a contract of an unknown version", func(c *coreedit.Core) error {
			return swap(c, `"ExecutionManager":2`, `"ExecutionManager":9`)
		}, "descriptor_unreadable", whole},
		{"a descriptor that lacks a type", func(c *coreedit.Core) error {
			return swap(c, `"RangeSectionFragment":`, `"XangeSectionFragment":`)
		}, "descriptor_unreadable", whole},
		{"a count of threads at an absurd place", func(c *coreedit.Core) error {
			return swap(c, `"ThreadCount":1`, `"ThreadCount":9`)
		}, "threads_cut", whole},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := editable(t, "net10-hello")
			if err := c.edit(core); err != nil {
				t.Fatal(err)
			}
			openEdit(t, core, func(s *Session) {
				v := *v
				v.t = t
				if n := v.compare(s, c.name); n < c.same {
					t.Errorf("%d of %d stacks are whole, want %d", n, whole, c.same)
				} else {
					t.Logf("%d of %d stacks are whole; %v", n, whole, s.Warnings)
				}
				if c.warning == "" && len(s.Warnings) > 0 || c.warning != "" && !warned(s.Warnings, c.warning) {
					t.Errorf("warnings %v, want %q", s.Warnings, c.warning)
				}
				if n := len(s.Methods()); n > 1<<20 {
					t.Errorf("%d methods", n)
				}
			})
		})
	}
}

// The runtime of a build that nobody knows, with a descriptor that cannot be
// read: its threads are walked as far as native code and frame pointers go.
func TestUnknownRuntime(t *testing.T) {
	v := newVictim(t, "net10-hello")
	c := editable(t, "net10-hello")
	id := []byte(coreclr(v.s).Image.ID.BuildID)
	if c.Replace(id, bytes.Repeat([]byte("ab"), len(id)/2)) == 0 {
		t.Fatalf("the dump does not hold the build-id %s", id)
	}
	if err := swap(c, `{"version":0`, `{"version":7`); err != nil {
		t.Fatal(err)
	}
	openEdit(t, c, func(s *Session) {
		if len(s.Runtimes) > 0 || !warned(s.Warnings, "runtime_unreadable") {
			t.Errorf("%d runtimes, warnings %v", len(s.Runtimes), s.Warnings)
		}
		if n := v.compare(s, "unknown runtime"); n < 9 {
			t.Errorf("%d stacks are whole", n)
		}
	})
}

// A core without notes of threads opens, and says so.
func TestNoThreads(t *testing.T) {
	c := editable(t, "net10-hello")
	c.Notes(func(name string, typ uint32, _ []byte) bool { return name != "CORE" || typ != 1 })
	openEdit(t, c, func(s *Session) {
		if len(s.Process.Threads) != 0 || len(s.Runtimes) != 1 || len(s.Methods()) == 0 {
			t.Errorf("%d threads, %d runtimes", len(s.Process.Threads), len(s.Runtimes))
		}
		if !warned(s.Process.Warnings, "no_threads") {
			t.Errorf("warnings %v", s.Process.Warnings)
		}
	})
}

// A core of a CPU that is not known is refused, and one that claims to be of
// another than it is does no harm.
func TestOtherCPU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "core")
	for machine := range uint16(300) {
		c := editable(t, "net10-crash-kernel")
		c.SetMachine(machine)
		if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := loader.Open(path, nil)
		if err != nil {
			if fe := (*loader.FormatError)(nil); !errors.As(err, &fe) || fe.Off != 18 || !strings.Contains(err.Error(), "CPU") {
				t.Errorf("machine %d: %v", machine, err)
			}
			continue
		}
		walkAll(Open(p, nil))
		p.Close()
	}
}

// A file that ends anywhere is shown as far as it goes, with a warning.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{"net10-hello", "net10-crash-kernel"} {
		v := newVictim(t, name)
		data := editable(t, name).Bytes()
		path := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		opened, refused, threads := 0, 0, 0
		for n := (len(data) - 1) &^ 4095; n >= 0; n -= 4096 {
			if err := os.Truncate(path, int64(n)); err != nil {
				t.Fatal(err)
			}
			p, err := loader.Open(path, nil)
			if err != nil {
				// Cut before the first thread and all memory, it is of no use, and
				// the error says where it is cut.
				var cut *loader.FormatError
				switch {
				case errors.As(err, &cut) && cut.Off == int64(n):
					refused++
				case !errors.Is(err, loader.ErrFormat):
					t.Errorf("%s cut at %#x: %v", name, n, err)
				}
				continue
			}
			if refused > 0 {
				t.Errorf("%s cut at %#x opens, and longer it did not", name, n)
			}
			opened++
			threads = max(threads, len(p.Threads))
			if !warned(p.Warnings, "core_cut") {
				t.Errorf("%s cut at %#x: warnings %v", name, n, p.Warnings)
			}
			v.compare(Open(p, nil), name+" cut")
			p.Close()
		}
		if want := (len(data) - 1) / 4096; opened+refused != want || refused > 8 || threads != len(v.stacks) {
			t.Errorf("%s: %d of %d cut files open, with %d threads at most", name, opened, want, threads)
		}
	}
}
