package stacks_test

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/stacks"
)

// openCase opens a dump of the recorded ones.
func openCase(t *testing.T, elem ...string) *stacks.Stacks {
	t.Helper()
	p, err := loader.Open(corpus.Path(t, elem...), &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return stacks.Of(managed.Open(p, nil), nil)
}

// recordedLines returns the lines of a recorded text.
func recordedLines(t *testing.T, elem ...string) (lines []string) {
	t.Helper()
	f, err := os.Open(corpus.Path(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	s := bufio.NewScanner(z)
	for s.Buffer(nil, 1<<26); s.Scan(); {
		lines = append(lines, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

var debuggersThread = regexp.MustCompile(`^thread (\d+) .* exception (\S+) (.*)$`)

// TestRecordedInProgress: the exceptions in progress are those that the runtime's
// own debugger library has found, with the same messages.
func TestRecordedInProgress(t *testing.T) {
	for _, name := range []string{"net10-scenarios-x64", "net9-scenarios-x64", "net8-scenarios-x64"} {
		want := map[uint32]string{}
		for _, line := range recordedLines(t, name, "clrmd.txt.zst") {
			if m := debuggersThread.FindStringSubmatch(line); m != nil {
				tid, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				want[uint32(tid)] = m[2] + ": " + m[3]
			}
		}
		if len(want) < 11 {
			t.Fatalf("%s: %d exceptions recorded", name, len(want))
		}
		s := openCase(t, name, "normal.zst")
		for _, lt := range s.Threads() {
			th := s.Thread(lt)
			got := ""
			if th.Exception != nil {
				got = th.Exception.String()
			}
			if got != want[th.TID] {
				t.Errorf("%s: thread %d is in %q, recorded %q", name, th.TID, got, want[th.TID])
			}
		}
	}
}

// TestRecordedInner: threads that were stopped at each step of a dispatch. Those
// whose exception was thrown because of another have that, with its stack trace.
func TestRecordedInner(t *testing.T) {
	for _, tt := range []struct {
		name  string
		inner int
		// unnamed is the one dynamic method of which the dump lacks the text of its name.
		unnamed arch.Addr
	}{{"net10-callbacks-x64", 40, 0}, {"net9-callbacks-x64", 32, 0}, {"net8-callbacks-x64", 28, 0x7f4b0ee1cc58}} {
		s := openCase(t, tt.name, "dump.zst")
		inner, thrown := 0, 0
		for _, lt := range s.Threads() {
			e := s.Thread(lt).Exception
			if e == nil {
				continue
			}
			if len(e.Lacks) > 0 {
				t.Errorf("%s: thread %d lacks %v of %v", tt.name, lt.ID, e.Lacks, e)
			}
			if e.Type == "System.Reflection.TargetInvocationException" || e.Type == "System.TypeInitializationException" {
				inner++
				if e.Inner == nil || e.Inner.String() != "System.InvalidOperationException: probe" || len(e.Inner.Frames) < 3 {
					t.Errorf("%s: thread %d: %v because of %v", tt.name, lt.ID, e, e.Inner)
				}
			} else if e.Inner != nil {
				t.Errorf("%s: thread %d: %v has the inner exception %v", tt.name, lt.ID, e, e.Inner)
			}
			for i := range e.Frames {
				f := &e.Frames[i]
				if f.Method != nil && f.Method.ID == tt.unnamed {
					continue
				}
				if f.Function == "" || f.Method == nil || f.SP == 0 || strings.HasPrefix(f.Function, "?") {
					t.Errorf("%s: thread %d: frame %d of the stack trace is %+v", tt.name, lt.ID, i, f.Place)
				}
			}
			thrown += len(e.Frames)
		}
		if inner != tt.inner || thrown < 1000 {
			t.Errorf("%s: %d exceptions with an inner one, %d frames", tt.name, inner, thrown)
		}
	}
}

// TestRecordedTraces: of threads that have printed their stack while the frames
// that an exception has passed were still on it, as in a filter, the exception's
// stack trace has those frames with the lines that were printed. Of the others the
// method that caught it is where both end.
func TestRecordedTraces(t *testing.T) {
	for _, dir := range []string{"net10-scenarios-x64", "net9-scenarios-x64", "net8-scenarios-x64"} {
		s := openCase(t, dir, "normal.zst")
		threads := map[uint32]*stacks.Exception{}
		for _, lt := range s.Threads() {
			threads[lt.ID] = s.Thread(lt).Exception
		}
		whole, ends := 0, 0
		for _, m := range marks(t, dir) {
			e := threads[m.tid]
			if e == nil {
				continue
			}
			if len(e.Frames) == 0 || len(e.Lacks) > 0 {
				t.Errorf("%s: %s: %d frames, lacking %v", dir, m.name, len(e.Frames), e.Lacks)
				continue
			}
			passed := strings.Contains(m.name, "filter") || m.name == "first-chance"
			at := 0
			for i := range e.Frames {
				f := &e.Frames[i]
				if !passed && i < len(e.Frames)-1 {
					continue
				}
				for at < len(m.frames) && !(m.frames[at].is(f) && m.frames[at].line == f.Line) {
					at++
				}
				if at == len(m.frames) {
					t.Errorf("%s: %s: %s at line %d was not printed there: %v", dir, m.name, f.Function, f.Line, m.frames)
					break
				}
				if at++; passed {
					whole++
				} else {
					ends++
				}
			}
		}
		if whole < 13 || ends < 5 {
			t.Errorf("%s: %d frames of whole stack traces, %d ends", dir, whole, ends)
		}
	}
}

// TestRecordedThreadNames: threads are called as the system calls them, which cuts
// names to 15 bytes, and the pool's workers and the finalizer are known.
func TestRecordedThreadNames(t *testing.T) {
	for dir, want := range map[string]int{"net10-scenarios-x64": 70, "net9-scenarios-x64": 60, "net8-scenarios-x64": 0} {
		system := map[uint32]string{}
		text, err := os.ReadFile(corpus.Path(t, dir, "threads.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			id, name, _ := strings.Cut(line, " ")
			if tid, err := strconv.Atoi(id); err == nil {
				system[uint32(tid)] = name
			}
		}
		s, named, roles := openCase(t, dir, "normal.zst"), 0, map[code.Role]int{}
		for _, lt := range s.Threads() {
			th := s.Thread(lt)
			is := system[th.TID]
			if th.Name != "" {
				if named++; is != th.Name[:min(len(th.Name), 15)] {
					t.Errorf("%s: thread %d is %q, the system calls it %q", dir, th.TID, th.Name, is)
				}
			}
			roles[th.Role]++
			if th.Role == code.RoleFinalizer && is != ".NET Finalizer" || th.Role == code.RoleThreadPool && is != ".NET TP Worker" && is != ".NET TP Gate" {
				t.Errorf("%s: thread %d, %q, has the role %q", dir, th.TID, is, th.Role)
			}
		}
		if named < want || roles[code.RoleFinalizer] != 1 || roles[code.RoleThreadPool] < 5 {
			t.Errorf("%s: %d names, roles %v", dir, named, roles)
		}
	}
}
