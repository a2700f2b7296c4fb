package profiler

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
)

// An edit sets 8 bytes of a process.
type edit struct {
	at arch.Addr
	v  uint64
}

// openEdited opens a recorded dump in which words are changed.
func openEdited(t testing.TB, name, dump string, edits ...edit) *managed.Session {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(corpus.Path(t), name, dump))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		off := -1
		phoff, n := binary.LittleEndian.Uint64(b[32:]), int(binary.LittleEndian.Uint16(b[56:]))
		for i := range n {
			p := b[int(phoff)+56*i:]
			at, size := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[32:])
			if binary.LittleEndian.Uint32(p) == 1 && uint64(e.at) >= at && uint64(e.at) < at+size {
				off = int(binary.LittleEndian.Uint64(p[8:]) + uint64(e.at) - at)
			}
		}
		if off < 0 {
			t.Fatalf("the dump does not hold %v", e.at)
		}
		binary.LittleEndian.PutUint64(b[off:], e.v)
	}
	path := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return managed.Open(p, nil)
}

// TestEditedFrames gives the walk chains of Frames that no runtime makes.
func TestEditedFrames(t *testing.T) {
	n, req := seedsRequest(t, "seeds-pre-stub/unseeded")
	m, _ := n.s.Thread(req.TID)
	good, _ := names(n, req, 0)
	top, ok := n.rt.FrameAt(m.Frame)
	if !ok || clr.FrameOf(top).Kind != clr.InlinedCallFrame {
		t.Fatalf("%+v", top)
	}
	below, _ := n.rt.FrameAt(top.Next)
	threadFrame := m.Addr + 8
	for _, c := range []struct {
		name  string
		edits []edit
		want  string
		hr    HRESULT
	}{
		{"nothing changed", nil, good, S_OK},
		{"a cycle", []edit{{below.Addr + 8, uint64(top.Addr)}}, good, E_UNEXPECTED},
		{"a Frame that is its own next", []edit{{top.Addr + 8, uint64(top.Addr)}}, "", E_UNEXPECTED},
		{"a chain into a hole", []edit{{threadFrame, 0x1000}}, "", E_UNEXPECTED},
		// Row 25: all that there is is the Frame of a method that is being compiled.
		{"a lone PrestubMethodFrame", []edit{{top.Addr, 9}, {top.Addr + 16, uint64(top.Addr)}}, "", S_OK},
		{"a PrestubMethodFrame that leads into a hole", []edit{{top.Addr, 9}, {top.Addr + 16, 0x1000}}, "", E_UNEXPECTED},
		{"no Frame at all", []edit{{threadFrame, ^uint64(0)}}, "", E_FAIL},
		// The Frame has a method: that it was passed makes the difference to E_FAIL.
		{"a return address in no code", []edit{{top.Addr + 32, 0x1234}}, "", S_OK},
		// One that is in no call has none.
		{"an inactive call", []edit{{top.Addr + 32, 0}}, "", E_FAIL},
		{"a frame that does not hold its InlinedCallFrame", []edit{{top.Addr + 24, uint64(m.StackLimit) + 4096}}, "", E_UNEXPECTED},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := snapshotter(t, openEdited(t, "net10-seeds-x64", "dump.zst", c.edits...))
			got, hr := names(n, req, 0)
			if hr != c.hr || c.want != "" && got != c.want {
				t.Errorf("%q, %v %s (%v)", got, hr, hr.Name(), n.Why())
			}
		})
	}
}

// threadFields are where the Threads of a release have fields, on Linux, written down
// here once more.
var threadFields = []struct {
	name                        string
	state, ret, slot, noSuspend arch.Addr
}{
	{"net10-seeds-x64", 0, 152, 160, 56},
	{"net9-seeds-x64", 0, 152, 160, 56},
	{"net8-seeds-x64", 8, 280, 288, 160},
}

// TestEditedHijack is row 55: a return address that the runtime has replaced
// to get hold of the thread is read as what it was. No dump of a suspended
// process has one: DoStackSnapshot undoes it before it walks.
func TestEditedHijack(t *testing.T) {
	for _, f := range threadFields {
		n, req := caseRequest(t, f.name, "seeds-coop-deep/seeded")
		m, _ := n.s.Thread(req.TID)
		want, _ := names(n, req, 0)
		var sps []arch.Addr
		n.Do(req, func(c Call) HRESULT {
			regs, _ := c.Registers()
			sps = append(sps, n.spOf(regs))
			return S_OK
		})
		slot := sps[2] - 8
		ret, _ := n.mem.Word(slot)
		s, _ := n.mem.Word(m.Addr + f.state)
		edits := []edit{{slot, 0x4141414141}, {m.Addr + f.state, s | 0x80}, {m.Addr + f.ret, ret}, {m.Addr + f.slot, uint64(slot)}}
		h := snapshotter(t, openEdited(t, f.name, "dump.zst", edits...))
		if got, hr := names(h, req, 0); got != want || hr != S_OK {
			t.Errorf("%s: %q, %v (%v), want %q", f.name, got, hr, h.Why(), want)
		}
		// Without the mark it is what it says.
		edits = append(edits[:1], edits[2:]...)
		h = snapshotter(t, openEdited(t, f.name, "dump.zst", edits...))
		if got, hr := names(h, req, 0); got != "SeedCoop Mid 0" || hr != S_OK {
			t.Errorf("%s: %q, %v (%v)", f.name, got, hr, h.Why())
		}
	}
}

// TestHijackFrames is row 55 once the thread has come to the stub: its HijackFrame
// leads to the caller of the method that was left.
func TestHijackFrames(t *testing.T) {
	for name, tid := range map[string]uint32{"net9-scenarios-x64": 4730, "net8-scenarios-x64": 5128} {
		n := snapshotter(t, openCase(t, name, "normal.zst"))
		m, _ := n.s.Thread(tid)
		if f, missing := n.rp.FrameAt(m.Frame); f.Kind != clr.HijackFrame || missing != 0 {
			t.Fatalf("%s: %+v", name, f)
		}
		got, hr := names(n, Request{TID: tid, Thread: ThreadID(m.Addr), Mode: Suspended}, 0)
		if got != "SpinCall <Define>b__9_67 <Main>b__0 0" || hr != S_OK {
			t.Errorf("%s: %q, %v (%v)", name, got, hr, n.Why())
		}
	}
}

// TestEditedForbidSuspend is row 78: in RuntimeThreadSuspended the target is in
// a region that forbids its suspension, whoever walks it, seed or not.
func TestEditedForbidSuspend(t *testing.T) {
	for _, f := range threadFields {
		n, req := caseRequest(t, f.name, "seeds-coop-deep/seeded")
		m, _ := n.s.Thread(req.TID)
		at := m.Addr + f.noSuspend
		v, _ := n.mem.Word(at)
		h := snapshotter(t, openEdited(t, f.name, "dump.zst", edit{at, v&^0xffffffff | 1}))
		if got, hr := names(h, req, 0); got != "" || hr != CORPROF_E_STACKSNAPSHOT_UNSAFE || h.Why().Row != 8 {
			t.Errorf("%s: %q, %v (%v)", f.name, got, hr, h.Why())
		}
	}
}

// TestEditedTracker walks past exceptions that are half written: they count as
// none, and Why says so. One that cannot be read does not.
func TestEditedTracker(t *testing.T) {
	n := snapshotter(t, openCase(t, "net10-callbacks-x64", "dump.zst"))
	r := readRecord(t, "net10-callbacks-x64")
	w := r.byName["exc-levels@018/018-ExceptionUnwindFunctionEnter/unseeded"]
	req, _, _ := r.request(w)
	m, _ := n.s.Thread(req.TID)
	if e, _, ok := n.rp.ExInfoAt(m.Exception, m); !ok || !e.Unwinding || e.Entered {
		t.Fatalf("%+v, %v", e, ok)
	}
	word := func(off arch.Addr) uint64 { v, _ := n.mem.Word(m.Exception + off); return v }
	for _, c := range []struct {
		name string
		edit edit
		hr   HRESULT
	}{
		{"second pass not started", edit{m.Exception + 0x40, word(0x40) &^ 4}, S_OK},
		{"handler entered", edit{m.Exception + 0x38, word(0x38) | 1<<32}, S_OK},
		{"a clause of no kind", edit{m.Exception + 0x38, 0x77}, S_OK},
		{"a previous one that is newer", edit{m.Exception, uint64(m.Exception) - 64}, S_OK},
		{"a previous one off the stack", edit{m.Exception, 0x1000}, S_OK},
		{"bounds off the stack", edit{m.Exception + 0x80, 0x4141}, S_OK},
		{"no exception where the Thread points", edit{m.Addr + 352, 0x1000}, E_UNEXPECTED},
	} {
		h := snapshotter(t, openEdited(t, "net10-callbacks-x64", "dump.zst", c.edit))
		if _, hr := names(h, req, 0); hr != c.hr {
			t.Errorf("%s: %v %s (%v)", c.name, hr, hr.Name(), h.Why())
		}
	}
}

// TestCallOver uses what a callback was given once it is over.
func TestCallOver(t *testing.T) {
	n, req := seedsRequest(t, "seeds-coop-deep/seeded")
	req.ClientData = "untouched"
	var kept []Call
	n.Do(req, func(c Call) HRESULT {
		for i := range kept {
			if _, err := kept[i].Context(); !errors.Is(err, ErrCallOver) {
				t.Errorf("context of callback %d in callback %d: %v", i, len(kept), err)
			}
		}
		if c.ClientData != "untouched" {
			t.Errorf("client data %v", c.ClientData)
		}
		if _, err := c.FrameInfo(); err != nil {
			t.Error(err)
		}
		kept = append(kept, c)
		return S_OK
	})
	for i := range kept {
		_, err1 := kept[i].FrameInfo()
		_, err2 := kept[i].Registers()
		if !errors.Is(err1, ErrCallOver) || !errors.Is(err2, ErrCallOver) {
			t.Errorf("callback %d after the walk: %v, %v", i, err1, err2)
		}
	}
	if len(kept) < 5 || kept[0].Function == 0 {
		t.Errorf("%d callbacks", len(kept))
	}
}

// replayAll walks every managed thread of the process.
func replayAll(n *Snapshotter) (calls int) {
	count := func(Call) HRESULT { calls++; return S_OK }
	for id := range n.tids {
		n.Do(Request{Thread: id, Mode: Suspended, Flags: COR_PRF_SNAPSHOT_REGISTER_CONTEXT}, count)
	}
	return calls
}

func TestSnapshotAllocations(t *testing.T) {
	for _, name := range []string{"net10-scenarios-x64", "net9-scenarios-x64", "net8-scenarios-x64"} {
		n := snapshotter(t, openCase(t, name, "normal.zst"))
		if calls := replayAll(n); calls < 5000 {
			t.Fatalf("%s: %d callbacks", name, calls)
		}
		if a := testing.AllocsPerRun(3, func() { replayAll(n) }); a > 2 { // the counter and the callback of the test itself
			t.Errorf("%s: %v allocations in a replay of the process", name, a)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := openCase(b, "net10-scenarios-x64", "normal.zst")
	n := snapshotter(b, s)
	calls := replayAll(n)
	b.Run("warm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			replayAll(n)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(calls), "ns/callback")
	})
	b.Run("whole", func(b *testing.B) { // with what a new snapshotter has to find out first
		for b.Loop() {
			n, _ := New(s)
			replayAll(n)
		}
	})
}
