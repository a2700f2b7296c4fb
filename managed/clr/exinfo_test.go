package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestExInfoRows takes the row of a version, the newest for one that is not known;
// what a descriptor gives goes before it. Of a version newer than all rows, what
// its descriptor does not give is said.
func TestExInfoRows(t *testing.T) {
	version := func(v string, given map[string]int) (*exInfoLayout, []string) {
		r := fakeRuntime(t, nil)
		r.data = fakeContract(t)
		r.Version = v
		delete(r.data.offsets, "ExceptionInfo.PreviousNestedInfo")
		for name, off := range given {
			r.data.offsets["ExceptionInfo."+name] = off
		}
		if err := r.layouts(); err != nil {
			t.Fatal(err)
		}
		return r.exInfo, r.exLacks
	}
	none := exInfoLayout{Thread: -1, LegacyThread: -1, LegacyFunclet: -1, LegacyEnclosing: -1}
	row8 := none
	row8.Prev, row8.Thread, row8.Low, row8.High, row8.Flags = 0x08, 0x10, 0x18, 0x20, 0xc8
	row8.Funclet, row8.Clause, row8.Entered, row8.Enclosing = 0x118, 0x120, 0x124, 0x128
	row10 := none
	row10.Clause, row10.Entered, row10.Flags, row10.Low, row10.High = 0x38, 0x3c, 0x40, 0x80, 0x88
	row9 := row10
	row10.Funclet, row10.Enclosing = 0x218, 0x220
	row9.Funclet, row9.Enclosing = 0x420, 0x428
	row9.LegacyThread, row9.LegacyFunclet, row9.LegacyEnclosing = 0x90, 0x30, 0x110
	for v, want := range map[string]exInfoLayout{"": row10, "8.0.31": row8, "9.0.20": row9, "10.0.12": row10} {
		if l, lacks := version(v, nil); l == nil || *l != want || lacks != nil || l.onStack() != (want.Thread < 0) {
			t.Errorf("%s: %+v, %v", v, l, lacks)
		}
	}
	if l, _ := version("7.0.1", nil); l != nil {
		t.Errorf("7: %+v", l)
	}
	if l, lacks := version("11.0.0", nil); l != nil || len(lacks) != 8 {
		t.Errorf("11 without a descriptor of it: %+v, %v", l, lacks)
	}
	given := map[string]int{"PreviousNestedInfo": 8, "ExceptionFlags": 16, "StackLowBound": 24, "StackHighBound": 32, "CSFEHClause": 40, "CSFEnclosingClause": 48}
	l, lacks := version("11.0.0", given)
	want := exInfoLayout{Prev: 8, Flags: 16, Low: 24, High: 32, Funclet: 40, Enclosing: 48, Entered: -1, Clause: -1,
		Thread: -1, LegacyThread: -1, LegacyFunclet: -1, LegacyEnclosing: -1}
	if l == nil || *l != want || len(lacks) != 2 {
		t.Errorf("11: %+v, %v", l, lacks)
	}
	if l, _ := version("10.0.12", given); l == nil || l.Low != 24 || l.Entered != 0x3c {
		t.Errorf("10 with a newer descriptor: %+v", l)
	}
	r := fakeRuntime(t, nil)
	r.proc = &loader.Process{}
	if warns := r.warnings(); len(warns) != 0 {
		t.Errorf("10.0: %v", warns)
	}
	r.data, r.Version = fakeContract(t), "11.0.0"
	if err := r.layouts(); err != nil || len(r.warnings()) != 1 {
		t.Errorf("11.0: %v, %v", r.warnings(), err)
	}
}

// TestExInfos reads the exceptions in progress of real threads: all pass what is
// checked of them.
func TestExInfos(t *testing.T) {
	for name, least := range map[string]int{"net10-scenarios": 11, "net10-r2r": 12, "net10-hello-arm64": 3} {
		r := readFixture(t, name).edited(nil)
		p, ts, n := r.Replay(), threadsOf(t, r), 0
		for i := range ts {
			for a := ts[i].Exception; a != 0; n++ {
				e, missing, ok := p.ExInfoAt(a, &ts[i])
				if !ok || missing != 0 {
					t.Errorf("%s: the exception at %v of thread %d: %+v, missing %v", name, a, ts[i].OSID, e, missing)
					break
				}
				a = e.Prev
			}
		}
		if n < least {
			t.Errorf("%s: %d exceptions in progress, want %d", name, n, least)
		}
	}
}

// TestEditedExInfo changes an exception in progress at the places that .NET 10 has
// its fields, and takes them away: what cannot be an ExInfo is none, and where a
// byte is missing is said.
func TestEditedExInfo(t *testing.T) {
	fx := readFixture(t, "net10-scenarios")
	var th code.Thread
	for _, x := range threadsOf(t, fx.edited(nil)) {
		if x.Exception != 0 {
			th = x
			break
		}
	}
	read := func(r *Runtime) (ExInfo, arch.Addr, bool) { return r.Replay().ExInfoAt(th.Exception, &th) }
	was, _, ok := read(fx.edited(nil))
	if !ok {
		t.Fatalf("%+v", was)
	}
	// The kind of the clause and whether its code was entered are 4 bytes each.
	for what, w := range map[string]struct {
		off arch.Addr
		v   uint64
	}{
		"a clause of no kind":          {0x38, maxClause + 1},
		"neither entered nor not":      {0x38, 2 << 32},
		"a previous one below it":      {0x00, uint64(th.Exception) - 8},
		"a previous one off the stack": {0x00, uint64(th.StackBase) + 8},
		"a low bound off the stack":    {0x80, uint64(th.StackLimit) - 8},
		"a high bound off the stack":   {0x88, uint64(th.StackBase) + 8},
	} {
		if e, missing, ok := read(fx.set(th.Exception+w.off, w.v)); ok || missing != 0 {
			t.Errorf("%s passes: %+v, missing %v", what, e, missing)
		}
	}
	if e, _, ok := read(fx.set(th.Exception+0x40, unwindHasStarted)); !ok || !e.Unwinding {
		t.Errorf("in its second pass: %+v, %v", e, ok)
	}
	if e, _, ok := read(fx.set(th.Exception+0x40, 0)); !ok || e.Unwinding {
		t.Errorf("in its first pass: %+v, %v", e, ok)
	}
	if e, _, ok := read(fx.set(th.Exception+0x38, filterClause|1<<32)); !ok || !e.Filter || !e.Entered {
		t.Errorf("in a filter: %+v, %v", e, ok)
	}
	const low = 16 // bytes that lie surely on the stack
	if e, _, ok := read(fx.set(th.Exception+0x218, uint64(th.StackBase)-low)); !ok || was.Enclosing != 0 && e.Funclet != th.StackBase-low {
		t.Errorf("with a funclet: %+v, %v", e, ok)
	}
	for _, off := range []arch.Addr{0, 0x38, 0x40, 0x80, 0x88, 0x218, 0x220} {
		if e, missing, ok := read(fx.without(th.Exception+off, 8)); ok || missing != th.Exception+off {
			t.Errorf("without the word at %#x: %+v, missing %v, %v", off, e, missing, ok)
		}
	}
}

// TestUnwound: a range of unwound frames is (low, high], but [low, high) before .NET 9
// on CPUs that have the return address in a register.
func TestUnwound(t *testing.T) {
	e := ExInfo{Unwinding: true, Low: 0x100, High: 0x200}
	for _, c := range []struct {
		version string
		cpu     *arch.Arch
		low     bool
	}{{"10.0.12", arch.AMD64, false}, {"10.0.12", arch.ARM64, false}, {"9.0.20", arch.ARM64, false}, {"8.0.31", arch.AMD64, false}, {"8.0.31", arch.ARM64, true}} {
		r := fakeRuntime(t, nil)
		r.release, r.use = releaseOf(c.version)
		r.arch = c.cpu
		p := r.Replay()
		if p.Unwound(&e, e.Low) != c.low || p.Unwound(&e, e.High) == c.low || !p.Unwound(&e, 0x180) || p.Unwound(&e, 0x201) || p.Unwound(&e, 0xff) {
			t.Errorf("%s on %s", c.version, c.cpu.Name)
		}
		if first := (ExInfo{Low: 0x100, High: 0x200}); p.Unwound(&first, 0x180) {
			t.Errorf("%s on %s: in the first pass", c.version, c.cpu.Name)
		}
	}
}

// TestExInfosOlder reads what .NET 9 and 8 keep of the exceptions in progress on some
// hundred threads, each at another point of a dispatch. An ExceptionTracker of 8 lies
// on the heap and leads back to its Thread: one of another thread's is none.
func TestExInfosOlder(t *testing.T) {
	for name, back := range map[string]arch.Addr{"net9-callbacks-x64": 0, "net8-callbacks-x64": 0x10} {
		core, err := coreedit.Read(corpus.Path(t, name, "dump.zst"))
		if err != nil {
			t.Fatal(err)
		}
		fx := &fixture{t, core}
		r := fx.edited(nil)
		p, ts := r.Replay(), threadsOf(t, r)
		n, unwinding, entered, filters := 0, 0, 0, 0
		var last *code.Thread
		for i := range ts {
			for a := ts[i].Exception; a != 0; n++ {
				e, missing, ok := p.ExInfoAt(a, &ts[i])
				if !ok || missing != 0 {
					t.Errorf("%s: the exception at %v of thread %d: %+v, missing %v", name, a, ts[i].OSID, e, missing)
					break
				}
				for what, is := range map[*int]bool{&unwinding: e.Unwinding, &entered: e.Entered, &filters: e.Filter} {
					if is {
						*what++
					}
				}
				last, a = &ts[i], e.Prev
			}
		}
		if t.Logf("%s: %d exceptions, %d in the second pass, in %d a handler was entered, in %d a filter", name, n, unwinding, entered, filters); n < 300 || unwinding < 100 || entered < 50 || filters < 20 {
			t.Errorf("%s: too few", name)
		}
		if back == 0 || last == nil {
			continue
		}
		at := last.Exception + back
		if _, missing, ok := fx.set(at, uint64(last.Addr)+8).Replay().ExInfoAt(last.Exception, last); ok || missing != 0 {
			t.Errorf("%s: of another thread: %v, missing %v", name, ok, missing)
		}
		if _, missing, ok := fx.without(at, 8).Replay().ExInfoAt(last.Exception, last); ok || missing != at {
			t.Errorf("%s: without its thread: %v, missing %v", name, ok, missing)
		}
	}
}

// TestLegacyTracker: a process of .NET 9 that asks for it keeps an exception in
// progress in a tracker, which does not lie on the stack, and leads back to its
// Thread. One is written over another Thread, in which there is room for it.
func TestLegacyTracker(t *testing.T) {
	fx := readFixture(t, "net9-transitions")
	ts := threadsOf(t, fx.edited(nil))
	var th, room *code.Thread
	for i := range ts {
		if ts[i].StackBase == 0 {
			continue
		}
		if th, room = room, &ts[i]; th != nil {
			break
		}
	}
	if th == nil {
		t.Fatal("there are no two threads with a stack")
	}
	in := func(below arch.Addr) uint64 { return uint64(th.StackBase - below) }
	words := map[arch.Addr]uint64{0: 0, 0x30: in(0x400), 0x38: filterClause | 1<<32, 0x40: unwindHasStarted,
		0x80: in(0x300), 0x88: in(0x200), 0x90: uint64(th.Addr), 0x110: in(0x100)}
	tracker := func(but arch.Addr, v uint64) *Runtime {
		return fx.edited(func(c *coreedit.Core) {
			for off, w := range words {
				if off == but {
					w = v
				}
				if err := c.SetWord(uint64(room.Addr+off), w); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	const unchanged = 0x1000 // none of these fields
	e, missing, ok := tracker(unchanged, 0).Replay().ExInfoAt(room.Addr, th)
	want := ExInfo{Addr: room.Addr, Unwinding: true, Entered: true, Filter: true, Low: th.StackBase - 0x300, High: th.StackBase - 0x200,
		Funclet: th.StackBase - 0x400, Enclosing: th.StackBase - 0x100}
	if e != want || missing != 0 || !ok {
		t.Errorf("%+v, missing %v, %v; want %+v", e, missing, ok, want)
	}
	for what, w := range map[string]struct {
		off arch.Addr
		v   uint64
	}{
		"of another thread":         {0x90, uint64(room.Addr)},
		"a clause of no kind":       {0x38, maxClause + 1},
		"a bound off the stack":     {0x88, uint64(th.StackBase) + 8},
		"neither entered nor not":   {0x38, 2 << 32},
		"a low bound off the stack": {0x80, 8},
	} {
		if e, missing, ok := tracker(w.off, w.v).Replay().ExInfoAt(room.Addr, th); ok || missing != 0 {
			t.Errorf("%s passes: %+v, missing %v", what, e, missing)
		}
	}
}
