package clr

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// recorded are dumps that createdump wrote, with what the runtime itself said
// of the same instant beside them. They are read with nothing but the dump.
var recorded = []string{"net10-hello-x64", "net10-scenarios-x64", "net10-r2r-x64", "net10-composite-x64", "net10-singlefile-x64", "net8-scenarios-x64"}

// openRecorded opens the dump of a case, or skips the test.
func openRecorded(t *testing.T, name string) (dir string, r *Runtime) {
	t.Helper()
	dump := corpus.Path(t, name, "normal.zst")
	dir = filepath.Dir(dump)
	p, err := loader.Open(dump, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	rts, warns := Open(p)
	if len(rts) != 1 {
		t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	return dir, rts[0]
}

// lines yields the lines of a packed text file.
func lines(t *testing.T, path string, yield func(string)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b := bufio.NewReader(z)
	for {
		s, err := b.ReadString('\n')
		if s != "" {
			yield(strings.TrimSuffix(s, "\n"))
		}
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordedNames holds tokens and names against those that the profiler
// interface gave the recorder: type without namespace and nesting, and method.
func TestRecordedNames(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			dir, r := openRecorded(t, name)
			total, unnamed := 0, 0
			lines(t, filepath.Join(dir, "record.jsonl.zst"), func(s string) {
				var e struct{ Ev, Func, Token, Type, Method string }
				if json.Unmarshal([]byte(s), &e) != nil || e.Ev != "name" || e.Method == "" {
					return
				}
				id, _ := strconv.ParseUint(e.Func, 0, 64)
				m, err := r.MethodAt(arch.Addr(id))
				total++
				if err != nil && m.Name == "" {
					unnamed++ // of a call that createdump did not walk
					return
				}
				if token := fmt.Sprintf("0x%08x", m.Token); token != e.Token {
					t.Errorf("%s.%s: token %s, want %s", e.Type, e.Method, token, e.Token)
				}
				want := e.Type + "." + e.Method
				if rest, ok := strings.CutSuffix(m.Name, want); !ok || rest != "" && !strings.HasSuffix(rest, "+") && !strings.HasSuffix(rest, ".") {
					t.Errorf("%s: name %q, want %q", e.Func, m.Name, want)
				}
			})
			if total == 0 || unnamed*10 > total {
				t.Errorf("%d of %d methods have no name", unnamed, total)
			}
			t.Logf("%d names, %d methods not in the dump", total-unnamed, unnamed)
		})
	}
}

// managedFrame is a managed frame in what ClrMD, a reader that uses the
// runtime's own debugger library, says of a dump.
var managedFrame = regexp.MustCompile(`^  [0-9a-f]{16} ([0-9a-f]{16}) managed md ([0-9a-f]+) token ([0-9a-f]+) (.*?)\(.*\) \[.*?\] \w+ il (\S+)`)

// TestRecordedFrames holds full names and IL offsets against ClrMD's. It looks
// a return address up as it is, so that is asked of ILOffset here; where it
// has no IL offset, or a special one, there is nothing to compare.
func TestRecordedFrames(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			dir, r := openRecorded(t, name)
			names, offsets := 0, 0
			lines(t, filepath.Join(dir, "clrmd.txt.zst"), func(s string) {
				f := managedFrame.FindStringSubmatch(s)
				if f == nil {
					return
				}
				ip, _ := strconv.ParseUint(f[1], 16, 64)
				md, _ := strconv.ParseUint(f[2], 16, 64)
				m, err := r.MethodAt(arch.Addr(md))
				if err != nil {
					t.Error(err)
				}
				got := m.Name
				if m.ILStub {
					got = strings.Replace(got, "dynamicClass.", "ILStubClass.", 1)
				} else if m.Dynamic {
					got = strings.Replace(got, "dynamicClass.", "DynamicClass.", 1)
				}
				if want := withoutArgs(f[4]); got != want {
					t.Errorf("%s: name %q, want %q", f[2], got, want)
				}
				if token := fmt.Sprintf("%08x", m.Token|0x06000000); token != f[3] {
					t.Errorf("%s: token %s, want %s", m.Name, token, f[3])
				}
				names++
				want, err := strconv.ParseUint(f[5], 16, 32)
				if err != nil {
					return
				}
				c, missing := r.CodeAt(arch.Addr(ip))
				if missing != 0 {
					t.Errorf("%#x: %v is missing", ip, missing)
				}
				off, ok := r.ilOffset(&c, arch.PC{Addr: arch.Addr(ip), Exact: true})
				if !ok || uint64(off) != want {
					t.Errorf("%s+%#x: IL offset %#x, %v; want %#x", m.Name, ip-uint64(c.Start), off, ok, want)
				}
				offsets++
			})
			if names == 0 || offsets == 0 {
				t.Errorf("%d names, %d IL offsets compared", names, offsets)
			}
			t.Logf("%d names, %d IL offsets", names, offsets)
		})
	}
}

// withoutArgs removes generic arguments as ClrMD prints them: [[A, Assembly],[B, Assembly]].
func withoutArgs(s string) string {
	i := strings.Index(s, "[[")
	if i < 0 {
		return s
	}
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return s[:i] + withoutArgs(s[j+1:])
			}
		}
	}
	return s
}

// TestRecordedMethods holds the list of JIT-compiled methods against the perf
// map that the runtime wrote: every method we list is in it, with the same
// size. The map has more: createdump leaves out heaps that it did not walk.
func TestRecordedMethods(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			dir, r := openRecorded(t, name)
			sizes := map[uint64]uint64{}
			names := map[uint64]string{}
			lines(t, filepath.Join(dir, "perf.map.zst"), func(s string) {
				f := strings.SplitN(s, " ", 3)
				at, _ := strconv.ParseUint(f[0], 0, 64)
				sizes[at], _ = strconv.ParseUint(f[1], 16, 64)
				names[at] = f[2]
			})
			n, named := 0, 0
			r.Compiled(func(m code.Compiled) bool {
				if m.Kind == code.CompiledStub {
					return true
				}
				n++
				at := uint64(m.Span.Lo)
				c, missing := r.CodeAt(m.Span.Hi - 1)
				if c.Start != m.Span.Lo || c.Method != m.ID {
					t.Errorf("%#x: its last byte belongs to code at %v of %v", at, c.Start, c.Method)
				}
				// A header that is cut by the dump leaves the place of the next one as bound.
				if got := uint64(m.Span.Hi) - at; missing == 0 && got != sizes[at] || got < sizes[at] {
					t.Errorf("%#x %s: %#x bytes, want %#x", at, names[at], got, sizes[at])
				}
				if d, err := r.MethodAt(m.ID); err == nil {
					named++
					method := d.Name[strings.LastIndex(d.Name, ".")+1:]
					if !strings.Contains(names[at], method+"(") {
						t.Errorf("%#x is %s, want %s", at, d.Name, names[at])
					}
				}
				return true
			})
			if named == 0 {
				t.Errorf("no name in %d methods", n)
			}
			t.Logf("%d methods, %d with names", n, named)
		})
	}
}

// TestRecordedExceptions: the program throws these, each on a thread of its own.
func TestRecordedExceptions(t *testing.T) {
	_, r := openRecorded(t, "net10-scenarios-x64")
	ts, _ := r.Threads()
	got := map[string]int{}
	for i := range ts {
		if e := r.InFlight(&ts[i]); e != nil {
			got[fmt.Sprintf("%s|%s|%#x", e.Type, e.Message, e.HResult)]++
		}
	}
	for want, n := range map[string]int{
		"System.InvalidOperationException|scenario|0x80131509":                                           7,
		"System.NullReferenceException|Object reference not set to an instance of an object.|0x80004003": 2,
		"System.DivideByZeroException|Attempted to divide by zero.|0x80020012":                           1,
		"System.TimeoutException|first-chance|0x80131505":                                                1,
	} {
		if got[want] != n {
			t.Errorf("%d threads with %s, want %d; all: %v", got[want], want, n, got)
		}
	}
}
