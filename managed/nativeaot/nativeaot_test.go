package nativeaot

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// recorded opens the recorded dump of a program of NativeAOT's, after an edit.
func recorded(t *testing.T, edit func(c *coreedit.Core)) *loader.Process {
	t.Helper()
	c, err := coreedit.Read(corpus.Path(t, "net9-nativeaot-x64", "gcore.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(c)
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(path, &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// runtimeOf returns the one runtime that is in p.
func runtimeOf(t *testing.T, p *loader.Process) *Runtime {
	t.Helper()
	rts, warns := Find(p)
	if len(rts) != 1 || len(warns) != 0 {
		t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	return rts[0].(*Runtime)
}

// threadsByTID returns the runtime's threads.
func threadsByTID(t *testing.T, r *Runtime) (byTID map[uint64]*code.Thread, warns []loader.Warning) {
	t.Helper()
	ts, warns := r.Threads()
	byTID = map[uint64]*code.Thread{}
	for i := range ts {
		byTID[ts[i].OSID] = &ts[i]
	}
	return byTID, warns
}

// The fields that the debug header does not give lie where they are said to:
// every thread stands on its stack.
func TestThreads(t *testing.T) {
	p := recorded(t, nil)
	r := runtimeOf(t, p)
	ts, warns := threadsByTID(t, r)
	if len(ts) != 11 || len(warns) != 0 {
		t.Fatalf("%d threads, %v", len(ts), warns)
	}
	for i := range p.Threads {
		d := &p.Threads[i]
		th := ts[uint64(d.ID)]
		if th == nil {
			continue // of libSystem.Native's own
		}
		sp, _ := d.Regs.Get(p.Arch.SP)
		if on, known := th.OnStack(arch.Addr(sp)); !on || !known {
			t.Errorf("thread %d stands at %#x, its stack is %v to %v", d.ID, sp, th.StackLimit, th.StackBase)
		}
		if th.Cooperative != (d.ID == 11555) || th.HijackSlot != 0 {
			t.Errorf("thread %d: %+v", d.ID, th)
		}
	}
}

// A thread's hijacked return address is found by the place of its slot and by that
// of the return address, in both orders of the fields.
func TestHijack(t *testing.T) {
	r := runtimeOf(t, recorded(t, nil))
	ts, _ := threadsByTID(t, r)
	was := ts[11555]
	slot, ret := uint64(was.StackBase)-256, uint64(r.span.Lo)+0xce400
	for _, before := range []int{24, 16} {
		// With the order of .NET 10 the words end right before the chain of ExInfos.
		r := runtimeOf(t, recorded(t, func(c *coreedit.Core) {
			at := uint64(field(was.Addr, r.fields.Exceptions-before))
			if c.SetWord(at, slot) != nil || c.SetWord(at+8, ret) != nil {
				t.Fatal("its words are not in the dump")
			}
		}))
		ts, _ := threadsByTID(t, r)
		if th := ts[11555]; uint64(th.HijackSlot) != slot || uint64(th.HijackReturn) != ret {
			t.Errorf("%d before: %+v", before, th)
		}
	}
}

// What is broken is said: a list of threads that goes round, a header of another
// version or without its magic number, and one whose arrays were never filled.
func TestBroken(t *testing.T) {
	p := recorded(t, nil)
	r := runtimeOf(t, p)
	list, _ := r.Threads()
	head, _, _ := r.Image.Lookup(headerSymbol)
	round := recorded(t, func(c *coreedit.Core) {
		c.SetWord(uint64(field(list[4].Addr, r.fields.Next)), uint64(list[1].Addr))
	})
	ts, warns := runtimeOf(t, round).Threads()
	if len(ts) != 5 || len(warns) != 1 || warns[0].Code != "threads_cut" {
		t.Errorf("a list that goes round: %d threads, %v", len(ts), warns)
	}
	for _, e := range []struct {
		off, v uint64
		want   string
	}{
		{0, 0x00000004_00000000, "magic number"},
		{0, 0x00000005_48444e44, "version 5"},
		{8, 3, "flags 0x3"},
		{headerTypes, 0, "not been filled"},
		{headerGlobals, uint64(head), "not at hand"},
		{headerTypes, 0x1000, "lacks a part"},
	} {
		rts, warns := Find(recorded(t, func(c *coreedit.Core) {
			if err := c.SetWord(uint64(head)+e.off, e.v); err != nil {
				t.Fatal(err)
			}
		}))
		if len(rts) != 0 || len(warns) != 1 || !strings.Contains(warns[0].Text, e.want) {
			t.Errorf("%#x at %d: %d runtimes, %v", e.v, e.off, len(rts), warns)
		}
	}
}

// The fault is left only by a record that is what it must be: with a word changed,
// the walk ends there, by name.
func TestThrow(t *testing.T) {
	const info = 0x7f19b9bf9b70 // the ExInfo of the thread with the fault
	pc := func(img *loader.Image) arch.Addr { return arch.Addr(img.Bias() + 0x63d11) }
	for _, e := range []struct {
		off, v uint64
		hole   bool
		want   unwind.Outcome
		why    unwind.Reason
	}{
		{want: unwind.Stepped},
		{off: exInfoContext, v: info, want: unwind.Broken, why: unwind.BadInfo},
		{off: 0x1a8, v: info + 0x1000, want: unwind.Broken, why: unwind.BadInfo}, // its stack pointer
		{off: exInfoContext, hole: true, want: unwind.Broken, why: unwind.MemoryMissing},
		{off: exInfoKind, hole: true, want: unwind.Broken, why: unwind.MemoryMissing},
		{off: 0x1a0, hole: true, want: unwind.Broken, why: unwind.MemoryMissing},
	} {
		p := recorded(t, func(c *coreedit.Core) {
			if e.hole {
				c.Hole(info+e.off, 8)
			} else if e.off != 0 && c.SetWord(info+e.off, e.v) != nil {
				t.Fatal("its words are not in the dump")
			}
		})
		r := runtimeOf(t, p)
		s := &unwind.Step{Mem: p.Memory, Arch: p.Arch, PC: arch.PC{Addr: pc(r.Image)}}
		s.Regs.Set(p.Arch.SP, info)
		if got := r.Sources()[0].Source.Unwind(s); got != e.want || got == unwind.Broken && s.Why.Reason != e.why {
			t.Errorf("%+v: %v, %+v", e, got, s.Why)
		}
		if e.want != unwind.Stepped {
			continue
		}
		if at, _ := s.Out.Get(p.Arch.PC); uint64(at) != r.Image.Bias()+0xce520 || !s.Exact {
			t.Errorf("the fault is at %#x, exact is %v", at, s.Exact)
		}
		s.PC.Exact = true
		if got := r.Sources()[0].Source.Unwind(s); got != unwind.NoInfo {
			t.Errorf("a thread that stands there: %v", got)
		}
	}
}

// made is a memory with a debug header, two threads and an exception, and the
// program that they lie in.
func made() (memtest.Pieces[arch.Addr], map[uint64]string) {
	names := map[uint64]string{}
	b := make([]byte, 0x2000)
	put := func(off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }
	name := func(s string) uint64 {
		a := uint64(0x9000 + 0x100*len(names))
		names[a] = s
		return a
	}
	put(0, headerMajor<<32|0x48444e44)
	put(8, flagWide)
	put(headerTypes, 0x10100)
	put(headerGlobals, 0x10080)
	put(0x80, name("g_pTheRuntimeInstance"))
	put(0x88, 0x10900)
	for i, f := range []struct {
		typ, field string
		off        uint64
	}{
		{"ThreadStore", "m_ThreadList", 0}, {"ThreadBuffer", "m_pNext", 88}, {"ThreadBuffer", "m_threadId", 184},
		{"ThreadBuffer", "m_pExInfoStackHead", 128}, {"ExInfo", "m_pPrevExInfo", 0}, {"ExInfo", "m_exception", 16},
		{"RuntimeInstance", "m_pThreadStore", 0},
	} {
		put(0x100+typeEntry*i, name(f.typ))
		put(0x108+typeEntry*i, name(f.field))
		put(0x110+typeEntry*i, f.off)
	}
	put(0x900, 0x10908)
	put(0x908, 0x10a00)
	put(0xa00+88, 0x10c00)
	put(0xa00+184, 7)
	put(0xa00+128, 0x11000)
	put(0xc00+184, 8)
	put(0x1010, 0x11100)            // the object
	put(0x1100, 0x11200)            // its MethodTable
	put(0x1100+excMessage, 0x11300) // a String
	put(0x1100+excHResult, 2<<32|0x80004003)
	put(0x1200, excSize<<32)
	put(0x1200+tableBase, 0x11240)
	put(0x1300, 0x11280)
	put(0x1300+arrayLength, 'o'<<48|'n'<<32|2)
	put(0x1280, tableHasItems<<16|2)
	put(0x1100+excInner, 0x11400) // its cause
	put(0x1100+excTrace, 0x11500)
	put(0x1100+excHResult, 4<<32|0x80004003)
	put(0x1400, 0x11200)
	put(0x1500, 0x112c0)
	put(0x1500+arrayLength, 16)
	for i, v := range []uint64{0x10010, separator, 0x10020, 0x10030} {
		put(0x1500+arrayItems+8*i, v)
	}
	put(0x12c0, tableHasItems<<16|8)
	return memtest.Pieces[arch.Addr]{{At: 0x10000, Data: b}}, names
}

// read opens what is in mem.
func read(mem arch.Memory, names map[uint64]string) (*Runtime, error) {
	h, err := readHeader(mem, 0x10000, func(a uint64) string { return names[a] })
	if err != nil {
		return nil, err
	}
	r := &Runtime{Image: &loader.Image{}, mem: mem, cpu: arch.AMD64, span: arch.Span{Lo: 0x10000, Hi: 0x12000}}
	return r, r.layouts(h)
}

// An exception has its cause, and its stack trace with the place where it was thrown
// anew; what leads back to an exception, or out of the program, is lacking.
func TestException(t *testing.T) {
	at := func(off int, v uint64) *code.Exception {
		mem, names := made()
		if off != 0 {
			binary.LittleEndian.PutUint64(mem[0].Data[off:], v)
		}
		r, err := read(mem, names)
		if err != nil {
			t.Fatal(err)
		}
		ts, _ := r.Threads()
		return r.InFlight(&ts[0])
	}
	e := at(0, 0)
	if e.Inner == nil || e.Inner.Address != 0x11400 || e.Lacks != code.LackAll || len(e.Trace) != 3 {
		t.Fatalf("%+v", e)
	}
	for i, pc := range []arch.Addr{0x10010, 0x10020, 0x10030} {
		if f := e.Trace[i]; f.PC.Addr != pc || !f.Native || f.Rethrown != (i == 0) {
			t.Errorf("%d: %+v", i, f)
		}
	}
	for _, c := range []struct {
		what  string
		off   int
		v     uint64
		lacks code.Lacking
	}{
		{"a cause that leads back", 0x1400 + excInner, 0x11100, code.LackAll},
		{"itself as its cause", 0x1100 + excInner, 0x11100, code.LackAll | code.LackInner},
		{"a return address elsewhere", 0x1500 + arrayItems + 16, 0x99990000, code.LackAll | code.LackTrace},
		{"more frames than the array has", 0x1500 + arrayLength, 3, code.LackAll | code.LackTrace},
		{"an array that is missing", 0x1100 + excTrace, 0x99990000, code.LackAll | code.LackTrace},
		{"an array that is none", 0x12c0, 8, code.LackAll | code.LackTrace},
		{"a class of another size", 0x1200, (excSize + 8) << 32, code.LackParts},
	} {
		if e := at(c.off, c.v); e.Lacks != c.lacks {
			t.Errorf("%s: lacks %#x, not %#x: %+v", c.what, e.Lacks, c.lacks, e)
		}
	}
	if e := at(0x1400+excInner, 0x11100); e.Inner.Lacks&code.LackInner == 0 {
		t.Errorf("the cause of the cause: %+v", e.Inner)
	}
}

// FuzzRuntime damages a made runtime: its header, threads and exceptions must end.
func FuzzRuntime(f *testing.F) {
	mem, names := made()
	r, err := read(mem, names)
	if err != nil {
		f.Fatal(err)
	}
	ts, warns := r.Threads()
	if len(ts) != 2 || len(warns) != 0 {
		f.Fatalf("%+v, %v", ts, warns)
	}
	if e := r.InFlight(&ts[0]); e.Message != "no" || e.HResult != 0x80004003 {
		f.Fatalf("%+v", e)
	}
	f.Add(uint16(0xa58), uint64(0x10a00), uint16(0x1010), uint64(0))
	f.Add(uint16(0x1248), uint64(0x11240), uint16(0x1308), ^uint64(0))
	f.Fuzz(func(t *testing.T, at1 uint16, v1 uint64, at2 uint16, v2 uint64) {
		mem, names := made()
		b := mem[0].Data
		for _, e := range [][2]uint64{{uint64(at1), v1}, {uint64(at2), v2}} {
			binary.LittleEndian.PutUint64(b[min(int(e[0]), len(b)-8):], e[1])
		}
		r, err := read(mem, names)
		if err != nil {
			return
		}
		ts, _ := r.Threads()
		for i := range ts {
			if e := r.InFlight(&ts[i]); e != nil && len(e.Message) > 3*len(b) {
				t.Errorf("a message of %d bytes", len(e.Message))
			}
		}
	})
}
