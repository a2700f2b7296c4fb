package profiler

import (
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
)

// TestContractRecorded repeats every recorded call whose situation the dump
// still holds, with nothing but the dump.
func TestContractRecorded(t *testing.T) {
	for _, c := range []struct {
		name, dump string
		calls      int // to be repeated
		missing    int // of them, those for which the dump lacks bytes
	}{
		{"net10-hello-x64", "normal.zst", 180, 0},
		{"net10-scenarios-x64", "normal.zst", 1014, 0},
		{"net10-r2r-x64", "normal.zst", 202, 0},
		{"net10-composite-x64", "normal.zst", 1004, 0},
		{"net10-singlefile-x64", "normal.zst", 1014, 0},
		{"deep-dotnet-x64", "dump.zst", 4, 0},
		{"net10-callbacks-x64", "dump.zst", 1079, 0},
		// Two threads stand in ReadyToRun code that createdump did not walk.
		// Of one the code's unwind information is in no page of the dump, of the
		// other the MethodDesc is neither.
		{"net10-seeds-x64", "dump.zst", 504, 24},
		{"net10-elt-fast-x64", "dump.zst", 207, 0},
		{"net10-elt-slow-x64", "dump.zst", 207, 0},
		{"net10-gc-x64", "dump.zst", 3, 0},
		{"net9-scenarios-x64", "normal.zst", 1034, 4},
		{"net9-callbacks-x64", "dump.zst", 1052, 0},
		{"net9-seeds-x64", "dump.zst", 502, 24},
		{"net9-elt-slow-x64", "dump.zst", 207, 0},
		{"net9-transitions-x64", "dump.zst", 48, 0},
		{"net8-scenarios-x64", "normal.zst", 1034, 0},
		{"net8-callbacks-x64", "dump.zst", 1040, 14},
		{"net8-seeds-x64", "dump.zst", 502, 24},
		{"net8-elt-fast-x64", "dump.zst", 207, 0},
		{"net8-transitions-x64", "dump.zst", 48, 0},
		{"net10-hello-arm64", "dump.zst", 160, 0},
		{"net10-r2r-arm64", "dump.zst", 1010, 0},
		{"net10-scenarios-arm64", "dump.zst", 990, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := snapshotter(t, openCase(t, c.name, c.dump))
			r := readRecord(t, c.name)
			asked, bad, missing := 0, 0, 0
			for _, w := range r.walks {
				diffs, ok := replay(n, r, w)
				if !ok {
					continue
				}
				if asked++; n.Why().Missing {
					missing++
				}
				if len(diffs) > 0 {
					if bad++; bad <= 20 {
						t.Errorf("%s: %d differences: %s", w.Walk, len(diffs), strings.Join(diffs[:min(3, len(diffs))], "; "))
					}
				}
			}
			if asked != c.calls || bad > 0 || missing != c.missing {
				t.Errorf("%d calls, want %d; %d differ; %d lack bytes, want %d", asked, c.calls, bad, missing, c.missing)
			}
		})
	}
}

// snapshotter returns one over the runtime of s.
func snapshotter(t testing.TB, s *managed.Session) *Snapshotter {
	t.Helper()
	if len(s.Runtimes) != 1 {
		t.Fatalf("%d runtimes: %v", len(s.Runtimes), s.Warnings)
	}
	n, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// names makes the call and returns the simple name of each callback's method,
// "0" for a native run.
func names(n *Snapshotter, req Request, abort int) (string, HRESULT) {
	var out []string
	hr := n.Do(req, func(c Call) HRESULT {
		name := "0"
		if c.Function != 0 {
			m, _ := n.rt.MethodAt(arch.Addr(c.Function))
			name = m.Name[strings.LastIndex(m.Name, ".")+1:]
		}
		if out = append(out, name); len(out) == abort {
			return HRESULT(uint32(abort)) // any answer but S_OK ends the walk
		}
		return S_OK
	})
	return strings.Join(out, " "), hr
}

// TestContractRows makes the calls of the rows again, in each release. That the
// walk equals the recorded one, registers and all, is tested too.
func TestContractRows(t *testing.T) {
	open := map[string]*Snapshotter{}
	records := map[string]*record{}
	for _, c := range contractRows {
		for _, release := range strings.Fields(c.releases) {
			name, dump := c.dump(release)
			t.Run(strconv.Itoa(c.row)+"/"+name+"/"+c.walk, func(t *testing.T) {
				n := open[name]
				if n == nil {
					n = snapshotter(t, openCaseFor(t, name, dump))
					open[name], records[name] = n, readRecord(t, name)
				}
				r := records[name]
				w := r.byName[c.walk]
				if w == nil {
					t.Fatal("there is no such walk")
				}
				if diffs, ok := replay(n, r, w); !ok || len(diffs) > 0 {
					t.Errorf("not as recorded: %v", diffs)
				}
				req, abort, _ := r.request(w)
				got, hr := names(n, req, abort)
				if want := c.calls(release); got != want || hr != c.hr {
					t.Errorf("%v %s (%v)\n got %s\nwant %s", hr, hr.Name(), n.Why(), got, want)
				}
			})
		}
	}
}

// seedsRequest returns the request of a recorded walk of the seeds case of .NET 10.
func seedsRequest(t *testing.T, walk string) (*Snapshotter, Request) {
	t.Helper()
	return caseRequest(t, "net10-seeds-x64", walk)
}

// caseRequest returns the request of a recorded walk.
func caseRequest(t *testing.T, name, walk string) (*Snapshotter, Request) {
	t.Helper()
	n := snapshotter(t, openCase(t, name, "dump.zst"))
	r := readRecord(t, name)
	req, _, ok := r.request(r.byName[walk])
	if !ok {
		t.Fatal("there is no such walk")
	}
	return n, req
}

// TestContractRowsWithoutWalk are the rows that no walk of a dump shows, but
// that a request to one does; the records of other processes have them.
func TestContractRowsWithoutWalk(t *testing.T) {
	for name, contextSize := range map[string]int{"net10-seeds-x64": 3232, "net9-seeds-x64": 3104, "net8-seeds-x64": 3104} {
		t.Run(name, func(t *testing.T) { rowsWithoutWalk(t, name, contextSize) })
	}
}

func rowsWithoutWalk(t *testing.T, name string, contextSize int) {
	n, good := caseRequest(t, name, "seeds-coop-deep/seeded")
	m, _ := n.s.Thread(good.TID)
	native := uint32(0)
	finalizer := uint32(0)
	var other *code.Thread
	still := readRecord(t, name).still
	for i := range n.s.Process.Threads {
		d := &n.s.Process.Threads[i]
		if x, _ := n.s.Thread(d.ID); x == nil {
			native = d.ID
		} else if still[d.ID] == "" && !x.Cooperative && x.Frame != code.EndOfFrames {
			finalizer = d.ID // or the tiering worker, which looks the same
		} else if x != m {
			other = x
		}
	}
	withSP := func(sp arch.Addr) []byte {
		var regs arch.Regs
		b := append([]byte(nil), good.Context...)
		flags := n.ctx.read(b, &regs)
		regs.Set(n.a.SP, uint64(sp))
		n.ctx.write(b, &regs, flags)
		return b
	}
	// The first frame keeps no frame pointer that tells its size: its unwind
	// codes count from the stack pointer.
	size := func() arch.Addr {
		var first, second arch.Addr
		n.Do(good, func(c Call) HRESULT {
			regs, _ := c.Registers()
			if first == 0 {
				first = n.spOf(regs)
			} else if second == 0 {
				second = n.spOf(regs)
			}
			return S_OK
		})
		return second - first
	}()
	for _, c := range []struct {
		row    int
		name   string
		change func(*Request)
		want   string
		hr     HRESULT
		dies   bool
	}{
		{9, "another thread, not suspended", func(r *Request) { r.Mode, r.Thread = OSSuspended, ThreadID(m.Addr) }, "", E_NOTIMPL, false},
		{11, "thread 0 of a native thread", func(r *Request) { r.TID = native }, "", S_OK, false},
		{15, "mask missing, flags bad", func(r *Request) { r.NoStackSnapshot, r.Flags = true, 8 }, "", CORPROF_E_INCONSISTENT_WITH_FLAGS, false},
		{17, "flags bad, native thread", func(r *Request) { r.Flags, r.TID = 8, native }, "", E_INVALIDARG, false},
		{23, "finalizer", func(r *Request) { r.TID, r.Context = finalizer, nil }, "", E_FAIL, false},
		{35, "stack pointer on another stack", func(r *Request) { r.Context = withSP(other.StackBase - 4096) }, "SeedCoop", E_FAIL, false},
		{36, "stack pointer unreadable", func(r *Request) { r.Context = withSP(0x1000) }, "", E_UNEXPECTED, true},
		{37, "stack pointer at the base after unwinding", func(r *Request) { r.Context = withSP(m.StackBase - size) }, "SeedCoop", E_FAIL, false},
		{76, "null callback", nil, "", E_UNEXPECTED, true},
		{76, "thread that is none", func(r *Request) { r.Thread = 0x1000 }, "", E_UNEXPECTED, true},
		{76, "seed cut short", func(r *Request) { r.Context = r.Context[:100] }, "", E_UNEXPECTED, true},
	} {
		t.Run(strconv.Itoa(c.row)+"/"+c.name, func(t *testing.T) {
			req := good
			var got string
			var hr HRESULT
			if c.change == nil {
				hr = n.Do(req, nil)
			} else {
				c.change(&req)
				got, hr = names(n, req, 0)
			}
			if got != c.want || hr != c.hr || n.Why().Dies != c.dies {
				t.Errorf("%q, %v %s (%v)", got, hr, hr.Name(), n.Why())
			}
		})
	}
	// Rows 32 to 34: a callback that answers other than S_OK, success or failure.
	for _, answer := range []HRESULT{S_FALSE, 2, E_FAIL, 0x80004004, 0xffffffff} {
		all := 0
		n.Do(good, func(Call) HRESULT { all++; return S_OK })
		for k := 1; k <= all; k++ {
			calls := 0
			hr := n.Do(good, func(Call) HRESULT {
				if calls++; calls == k {
					return answer
				}
				return S_OK
			})
			if hr != CORPROF_E_STACKSNAPSHOT_ABORTED || calls != k {
				t.Errorf("32, 33, 34: %v after %d callbacks, %v at the %d.", hr, calls, answer, k)
			}
		}
	}
	// Row 66: a walk of the same thread from inside of its callback.
	inner := S_OK
	hr := n.Do(good, func(Call) HRESULT {
		inner = n.Do(good, func(Call) HRESULT { t.Error("66: a callback"); return S_OK })
		return S_OK
	})
	if hr != S_OK || inner != CORPROF_E_STACKSNAPSHOT_UNSAFE {
		t.Errorf("66: %v, the inner walk %v", hr, inner)
	}
	// Row 19 and 20: the size and flags of the first context; row 61 is part of
	// every comparison with a record.
	first := true
	unseeded := good
	unseeded.TID = n.req0(t, name, "seeds-pre-stub")
	unseeded.Context = nil
	n.Do(unseeded, func(c Call) HRESULT {
		ctx, _ := c.Context()
		var regs arch.Regs
		if flags := n.ctx.read(ctx, &regs); len(ctx) != contextSize || int(c.ContextSize) != contextSize || n.pcOf(&regs) != c.IP || first && flags != 0 {
			t.Errorf("19, 20: %d bytes, flags %#x, pc %v of %v", len(ctx), flags, n.pcOf(&regs), c.IP)
		}
		first = false
		return S_OK
	})
	// Row 65: a debugger's filter context is where a walk without a seed begins.
	filtered := good
	filtered.Context, filtered.FilterContext = nil, good.Context
	want, _ := names(n, good, 0)
	if got, hr := names(n, filtered, 0); got != want || hr != S_OK {
		t.Errorf("65: %q, %v", got, hr)
	}
	// Row 77: a pc right behind a method counts as the method's.
	var regs arch.Regs
	behind := append([]byte(nil), good.Context...)
	flags := n.ctx.read(behind, &regs)
	regs.Set(n.a.PC, uint64(n.lookup(n.pcOf(&regs)).code.Body.Hi))
	n.ctx.write(behind, &regs, flags)
	padded := good
	padded.Context = behind
	if got, hr := names(n, padded, 0); hr == CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX || !strings.HasPrefix(got, "SeedCoop ") {
		t.Errorf("77: %q, %v", got, hr)
	}
	// Row 16: before the runtime has started there is no Thread.
	none := *n
	none.byID = map[ThreadID]*code.Thread{}
	if hr := none.Do(Request{NoStackSnapshot: true}, nil); hr != CORPROF_E_STACKSNAPSHOT_UNSAFE {
		t.Errorf("16: %v", hr)
	}
}

// req0 returns the thread that stands in a situation of a case.
func (n *Snapshotter) req0(t *testing.T, name, situation string) uint32 {
	for tid, at := range readRecord(t, name).still {
		if at == situation {
			return tid
		}
	}
	t.Fatalf("no thread in %s", situation)
	return 0
}
