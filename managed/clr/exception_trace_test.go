package clr

import (
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// fakeThrown is a made runtime with exceptions on its heap.
type fakeThrown struct {
	*fakeTypes
	class, bytes, objects arch.Addr // MethodTables
}

const fakeThrow, fakeTrace = arch.Addr(0x30010000), arch.Addr(0x30020000)

func newFakeThrown(t testing.TB) *fakeThrown {
	f := &fakeThrown{fakeTypes: newFakeTypes(t)}
	f.class = f.fakeTypes.class(f.owner(t, ridMain))
	f.word(field(f.class, f.n.MTParent), 0)
	f.bytes, f.objects = f.arrayClass(1), f.arrayClass(8)
	return f
}

func (f *fakeThrown) arrayClass(item uint64) arch.Addr {
	mt := f.fakeTypes.class(1)
	f.put(field(mt, f.n.MTFlags), mtComponentSize|mtArray|mtVector|item, 4)
	return mt
}

// exception makes an exception object, with an inner one and a stack trace.
func (f *fakeThrown) exception(a, inner, trace arch.Addr) {
	f.word(field(a, f.n.ObjectMT), f.class)
	f.word(field(a, f.n.ExcMessage), 0)
	f.put(field(a, f.n.ExcHResult), 0x80131500, 4)
	f.word(field(a, f.n.ExcInner), inner)
	f.word(field(a, f.n.ExcTrace), trace)
}

// trace makes a stack trace of n frames in an array with room for more.
func (f *fakeThrown) trace(a arch.Addr, n int) {
	f.word(a, f.bytes)
	f.put(field(a, f.n.ArrayCount), 16+32*8, 4)
	f.put(a+16, uint64(n), 4)
	for i := range arch.Addr(n) {
		at := a + 32 + 32*i
		f.word(at, 0x40000000+i)
		f.word(at+8, 0x7ffd0000+8*i)
		f.word(at+16, 0x60000000+i)
		f.put(at+24, []uint64{elementAdjusted, elementAdjusted | elementRethrown, 0}[i%3], 4)
	}
}

// TestTrace reads a stack trace in both its forms, and what is left of one that is
// cut or claims more than there is.
func TestTrace(t *testing.T) {
	f := newFakeThrown(t)
	f.exception(fakeThrow, 0, fakeTrace)
	f.trace(fakeTrace, 3)
	check := func(what string, frames int, whole bool) {
		t.Helper()
		got, ok := fakeRuntime(t, f.core(t)).traceOf(fakeThrow, maxTrace)
		if len(got) != frames || ok != whole {
			t.Errorf("%s: %d frames, whole %v", what, len(got), ok)
		}
		for i, g := range got {
			want := code.TraceFrame{SP: 0x7ffd0000 + 8*arch.Addr(i), Rethrown: i%3 == 1, Code: code.Code{Method: 0x60000000 + arch.Addr(i)}}
			if want.PC = (arch.PC{Addr: 0x40000001 + arch.Addr(i)}); i%3 == 2 {
				want.PC = arch.PC{Addr: 0x40000000 + arch.Addr(i)} // a fault's own
			}
			if g != want {
				t.Errorf("%s: frame %d is %+v, want %+v", what, i, g, want)
			}
		}
	}
	check("an array of bytes", 3, true)

	const keep = fakeTrace + 0x1000
	f.word(field(fakeThrow, f.n.ExcTrace), keep)
	f.word(keep, f.objects)
	f.put(field(keep, f.n.ArrayCount), 2, 4)
	f.word(keep+16, fakeTrace)
	check("an array of objects", 3, true)
	f.word(keep+16, fakeThrow)
	check("an array whose first object is none", 0, false)
	f.word(keep+16, fakeTrace)

	f.put(fakeTrace+16, 8, 4)
	check("frames that the dump lacks", 3, false)
	f.put(fakeTrace+16, 9, 4)
	check("more frames than the array has room for", 0, false)
	f.put(fakeTrace+16, 0xffffffff, 4)
	check("an absurd number of frames", 0, false)
	f.put(fakeTrace+16, 3, 4)
	f.put(field(fakeTrace, f.n.ArrayCount), 8, 4)
	check("an array shorter than its head", 0, false)
	f.word(fakeTrace, f.class)
	check("no array", 0, false)
	if v, ok := fakeRuntime(t, f.core(t)).arrayAt(keep); !ok || v != (array{keep + 16, 2, 8}) {
		t.Errorf("the array of objects is %+v", v)
	}
	f.word(field(fakeThrow, f.n.ExcTrace), 0)
	check("never thrown", 0, true)
}

// TestSharedTrace: what exceptions that lead to each other have of stack traces is
// bounded together, also where all have the same array.
func TestSharedTrace(t *testing.T) {
	f := newFakeThrown(t)
	const second, third = fakeThrow + 0x1000, fakeThrow + 0x2000
	f.exception(fakeThrow, second, fakeTrace)
	f.exception(second, third, fakeTrace)
	f.exception(third, 0, fakeTrace)
	f.trace(fakeTrace, 3)
	x := exceptionReader{fakeRuntime(t, f.core(t)), map[arch.Addr]*code.Exception{}, 7}
	e := x.at(fakeThrow)
	if e == nil || e.Inner == nil || e.Inner.Inner == nil {
		t.Fatalf("%+v", e)
	}
	if n := []int{len(e.Trace), len(e.Inner.Trace), len(e.Inner.Inner.Trace)}; !slices.Equal(n, []int{0, 3, 3}) {
		t.Errorf("%d frames of the three", n)
	}
	if e.Lacks&code.LackTrace == 0 || e.Inner.Lacks&code.LackTrace != 0 {
		t.Errorf("the one without frames lacks %v, the next %v", e.Lacks, e.Inner.Lacks)
	}
}

// TestInner follows inner exceptions: to the end, round a cycle, to where there is
// no object.
func TestInner(t *testing.T) {
	f := newFakeThrown(t)
	at := func(i int) arch.Addr { return fakeThrow + arch.Addr(0x100*i) }
	chain := func(e *code.Exception) (n int, lacks code.Lacking) {
		for ; e != nil; e = e.Inner {
			n, lacks = n+1, lacks|e.Lacks
		}
		return n, lacks
	}
	f.exception(at(0), at(1), 0)
	f.exception(at(1), at(2), 0)
	f.exception(at(2), 0, 0)
	for _, tt := range []struct {
		what  string
		inner arch.Addr // of the last
		n     int
		lacks code.Lacking
	}{
		{"an end", 0, 3, 0},
		{"a cycle", at(0), 3, code.LackInner},
		{"itself", at(2), 3, code.LackInner},
		{"what the dump lacks", 0x70000000, 3, code.LackInner},
		{"no object", fakeTrace, 3, code.LackInner},
	} {
		f.word(fakeTrace, 0)
		f.word(field(at(2), f.n.ExcInner), tt.inner)
		if n, lacks := chain(fakeRuntime(t, f.core(t)).exceptionAt(at(0))); n != tt.n || lacks != tt.lacks {
			t.Errorf("%s: %d exceptions, lacking %b", tt.what, n, lacks)
		}
	}
	for i := range 2 * maxExceptions {
		f.exception(at(i), at(i+1), 0)
	}
	if n, lacks := chain(fakeRuntime(t, f.core(t)).exceptionAt(at(0))); n != maxExceptions || lacks != code.LackInner {
		t.Errorf("a chain without end: %d exceptions, lacking %b", n, lacks)
	}
}

// TestList reads the list of an exception that stands for several.
func TestList(t *testing.T) {
	f := newFakeThrown(t)
	const e, one, two, list = fakeThrow, fakeThrow + 0x100, fakeThrow + 0x200, fakeTrace
	f.exception(e, one, 0)
	f.exception(one, 0, 0)
	f.exception(two, 0, 0)
	f.word(field(e, f.n.ExcAll), list)
	f.word(list, f.objects)
	f.put(field(list, f.n.ArrayCount), 2, 4)
	f.word(list+16, one)
	f.word(list+24, two)
	read := func() ([]*code.Exception, bool) {
		r := fakeRuntime(t, f.core(t))
		x := exceptionReader{r, map[arch.Addr]*code.Exception{}, maxTrace}
		out := &code.Exception{Address: e}
		whole := x.list(out, one)
		return out.All, whole
	}
	if all, whole := read(); len(all) != 2 || !whole || all[0].Address != one || all[1].Address != two {
		t.Errorf("%v, whole %v", all, whole)
	}
	f.word(list+24, 0x70000000)
	if all, whole := read(); len(all) != 1 || whole {
		t.Errorf("without the second: %v, whole %v", all, whole)
	}
	f.word(list+16, two)
	if all, whole := read(); len(all) != 0 || whole {
		t.Errorf("the first is not the inner one: %v, whole %v", all, whole)
	}
	f.put(field(list, f.n.ArrayCount), 0x7fffffff, 4)
	if all, whole := read(); len(all) != 0 || whole {
		t.Errorf("an absurd length: %v, whole %v", all, whole)
	}
}

// TestEnds: what a thread's last exception and the state of the dispatch say.
func TestEnds(t *testing.T) {
	f := newFakeThrown(t)
	const thread, handle = arch.Addr(0x30030000), arch.Addr(0x30031000)
	f.exception(fakeThrow, 0, 0)
	f.word(handle, fakeThrow)
	f.word(field(thread, f.n.LastThrown), handle)
	for unhandled, want := range map[uint64]code.End{0: code.EndNone, 1: code.EndUnhandled, 2: code.EndNone} {
		f.put(field(thread, f.n.LastUnhandled), unhandled, 4)
		end, e := fakeRuntime(t, f.core(t)).Ends(&code.Thread{Addr: thread})
		if end != want || (e != nil) != (want == code.EndUnhandled) {
			t.Errorf("%d: %v, %+v", unhandled, end, e)
		}
	}
}
