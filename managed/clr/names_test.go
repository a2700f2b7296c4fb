package clr

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/managed/code"
)

// A fakeTypes is a runtime's loader heap in the making: one module, whose
// metadata is that of a real program, and types and methods of it.
type fakeTypes struct {
	fakeMemory
	n    *names
	meta *ecma.Metadata
	next arch.Addr
}

const (
	fakeModule   = arch.Addr(0x10000000)
	fakeAssembly = arch.Addr(0x10800000)
	fakePath     = arch.Addr(0x11000000)
	fakeImage    = arch.Addr(0x12000000)
)

func newFakeTypes(t testing.TB) *fakeTypes {
	t.Helper()
	data, err := os.ReadFile("../../internal/ecma/testdata/scenarios.metadata")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeTypes{fakeMemory: fakeMemory{}, n: &fakeRuntime(t, nil).names, next: 0x13000000}
	// A module without an image: emitted, its metadata saved beside it.
	f.word(field(fakeModule, f.n.ModBase), 0)
	f.word(field(fakeModule, f.n.ModDynamic), fakeImage)
	f.word(field(fakeModule, f.n.ModPath), fakePath)
	f.word(field(fakeModule, f.n.ModAssembly), fakeAssembly)
	f.word(field(fakeAssembly, f.n.AssemblyMod), fakeModule)
	f.utf16(fakePath, "/app/scenarios.dll")
	f.put(field(fakeImage, f.n.DynSize), uint64(len(data)), 4)
	f.bytes(field(fakeImage, f.n.DynBytes), data)
	if f.meta, err = ecma.Open(f.core(t).Memory, field(fakeImage, f.n.DynBytes), uint32(len(data))); err != nil {
		t.Fatal(err)
	}
	return f
}

// room makes room for n bytes.
func (f *fakeTypes) room(n int) arch.Addr {
	a := f.next
	f.next += arch.Addr(n+31) &^ 15
	return a
}

// class makes the MethodTable of a TypeDef row, with generic arguments.
func (f *fakeTypes) class(rid uint32, args ...arch.Addr) arch.Addr {
	mt, class := f.room(64), f.room(96)
	flags := uint64(0)
	if len(args) > 0 {
		flags = 0x10
	}
	f.put(field(mt, f.n.MTFlags), flags, 4)
	f.put(field(mt, f.n.MTFlags2), uint64(rid)<<8|7, 4)
	f.put(field(mt, f.n.MTVirtuals), 4, 2)
	f.word(field(mt, f.n.MTModule), fakeModule)
	f.word(field(mt, f.n.MTParent), mt)
	f.word(field(mt, f.n.MTClass), class)
	f.word(field(class, f.n.ClassMT), mt)
	f.word(field(mt, f.n.MTArgs), 0)
	if len(args) > 0 {
		// A base class's dictionary comes first, and is not asked for.
		dicts := f.room(24) + 8
		list := f.list(args...)
		f.put(field(dicts-8, f.n.DictCount), 2, 2)
		f.put(field(dicts-8, f.n.DictArgs), uint64(len(args)), 2)
		f.word(dicts, 0)
		f.word(dicts+8, list)
		f.word(field(mt, f.n.MTArgs), dicts)
	}
	return mt
}

func (f *fakeTypes) list(handles ...arch.Addr) arch.Addr {
	a := f.room(8 * len(handles))
	for i, h := range handles {
		f.word(a+8*arch.Addr(i), h)
	}
	return a
}

// array makes the MethodTable of an array; rank 0 is a vector.
func (f *fakeTypes) array(elem arch.Addr, rank uint64) arch.Addr {
	mt := f.class(0)
	flags := uint64(mtComponentSize | mtArray | 8)
	if rank == 0 {
		flags |= mtVector
	}
	f.put(field(mt, f.n.MTFlags), flags, 4)
	f.word(field(mt, f.n.MTArgs), elem)
	class := mt + 80 // where class put it
	f.put(field(class, f.n.ClassRank), rank, 1)
	return mt
}

// desc makes a TypeDesc of one argument.
func (f *fakeTypes) desc(kind uint64, arg arch.Addr) arch.Addr {
	d := f.room(48)
	f.put(field(d, f.n.DescFlags), kind|0x100, 4)
	f.word(field(d, f.n.DescArg), arg)
	return d | handleTypeDesc
}

// method makes a MethodDesc in a chunk of mt, the third in it.
func (f *fakeTypes) method(mt arch.Addr, rid uint32, flags uint64) arch.Addr {
	chunk := f.room(256)
	f.word(field(chunk, f.n.ChunkMT), mt)
	f.put(field(chunk, f.n.ChunkRange), uint64(rid>>12)|0x8000, 2)
	md := field(chunk, f.n.ChunkSize) + 48
	f.put(field(md, f.n.MDFlags3), uint64(rid&0xfff)|0x3000, 2)
	f.put(field(md, f.n.MDIndex), 48/8, 1)
	f.put(field(md, f.n.MDFlags), flags|0x28, 2)
	return md
}

// stored gives a MethodDesc a signature of its own, a name, and flags.
func (f *fakeTypes) stored(md arch.Addr, sig, name string, flags uint64) {
	a, b := f.room(len(sig)), f.room(len(name)+1)
	f.bytes(a, []byte(sig))
	f.bytes(b, []byte(name+"\x00"))
	f.word(field(md, f.n.SigAt), a)
	f.put(field(md, f.n.SigSize), uint64(len(sig)), 4)
	f.put(field(md, f.n.SigFlags), flags, 4)
	f.word(field(md, f.n.DynName), b)
}

// owner returns the TypeDef row of a method's class.
func (f *fakeTypes) owner(t testing.TB, rid uint32) uint32 {
	o, err := f.meta.Owner(rid)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Rows of MethodDef in the fixture.
const (
	ridMain   = 0x11 // Program.Main(string[])
	ridMethod = 0x3f // Generic`1.Method
	ridCall   = 0xc6 // Generic`1+Nested`1.Call
)

// methods makes one MethodDesc of each sort, and says what Describe is to
// make of it.
func (f *fakeTypes) methods(t testing.TB) (want []code.Method) {
	const path = "/app/scenarios.dll"
	program := f.class(f.owner(t, ridMain))
	callback := f.class(f.owner(t, 1))
	add := func(md arch.Addr, m code.Method) {
		m.ID, m.Module = md, path
		want = append(want, m)
	}
	add(f.method(program, ridMain, 0), code.Method{Token: 0x06000011, Name: "Program.Main", Params: []string{"string[]"}})

	// Generic<callback[,,]>.Nested<callback*>.Call<ref Program[]>
	nested := f.class(f.owner(t, ridCall), f.array(callback, 3), f.desc(descPointer, callback))
	md := f.method(nested, ridCall, classInstantiated)
	args := f.list(f.desc(descByRef, f.array(program, 0)))
	f.word(field(md, f.n.InstArgs), args)
	f.put(field(md, f.n.InstFlags), 2, 2)
	f.put(field(md, f.n.InstCount), 1, 2)
	add(md, code.Method{Token: 0x060000c6, Name: "Generic`1+Nested`1.Call", TypeArgs: []string{"Callback[,,]", "Callback*"},
		MethodArgs: []string{"ref Program[]"}, Params: []string{"T", "V", "W"}})

	// Generic arguments that are generic themselves, and a function pointer.
	fn := f.room(64)
	f.put(field(fn, f.n.DescFlags), descFn, 4)
	f.put(field(fn, f.n.FnCount), 1, 4)
	f.word(field(fn, f.n.FnTypes), program)
	f.word(field(fn, f.n.FnTypes)+8, callback)
	inner := f.class(f.owner(t, ridMethod), fn|handleTypeDesc)
	add(f.method(f.class(f.owner(t, ridMethod), inner), ridMethod, 0), code.Method{Token: 0x0600003f, Name: "Generic`1.Method",
		TypeArgs: []string{"Generic<delegate*<Callback, Program>>"}, Params: []string{"T", "U"}})

	// Signatures of the runtime's own name types by pointer.
	var p [8]byte
	for i := range p {
		p[i] = byte(uint64(program) >> (8 * i))
	}
	md = f.method(program, 0, classDynamic)
	f.stored(md, "\x00\x02\x01\x08\x21"+string(p[:]), "IL_STUB_PInvoke", 0x8000)
	add(md, code.Method{Name: "dynamicClass.IL_STUB_PInvoke", Params: []string{"int", "Program"}, Dynamic: true, ILStub: true})
	md = f.method(program, 0, classDynamic)
	f.stored(md, "\x00\x00\x01", "Made", 0x4000)
	add(md, code.Method{Name: "dynamicClass.Made", Dynamic: true})

	md = f.method(f.array(program, 2), 0, classArray)
	f.put(field(md, f.n.MDSlot), 4+1, 2)
	f.stored(md, "\x20\x03\x01\x08\x08\x13\x00", "", 0)
	add(md, code.Method{Name: "Program[,].Set", Params: []string{"int", "int", "Program"}})
	return want
}

func TestDescribe(t *testing.T) {
	f := newFakeTypes(t)
	want := f.methods(t)
	r := fakeRuntime(t, f.core(t))
	for _, w := range want {
		for range 2 { // once read, once kept
			if m, err := r.MethodAt(w.ID); err != nil {
				t.Errorf("%s: %v", w.Name, err)
			} else if d := cmp.Diff(w, m); d != "" {
				t.Errorf("%s: %s", w.Name, d)
			}
		}
	}
}

// TestDescribeHoles takes each word away in turn: what Describe says without
// an error is still right, and what it says with one is a part of it.
func TestDescribeHoles(t *testing.T) {
	f := newFakeTypes(t)
	want := f.methods(t)
	n := 0
	for at, v := range f.fakeMemory {
		if at >= fakeImage && at < fakeImage+0x10000 && at%256 != 0 {
			continue // the metadata has tests of its own
		}
		delete(f.fakeMemory, at)
		r := fakeRuntime(t, f.core(t))
		for _, w := range want {
			m, err := r.MethodAt(w.ID)
			if err == nil {
				// The path has a substitute, the assembly's name.
				w.Module = m.Module
				if !reflect.DeepEqual(w, m) {
					t.Errorf("without %v: %s", at, cmp.Diff(w, m))
				}
			} else if m.Name != "" && m.Name != w.Name || m.Token != 0 && m.Token != w.Token ||
				!lessOf(m.TypeArgs, w.TypeArgs, m.Unknown&code.PartTypeArgs != 0) || !lessOf(m.MethodArgs, w.MethodArgs, m.Unknown&code.PartMethodArgs != 0) ||
				!lessOf(m.Params, w.Params, m.Unknown&code.PartParams != 0) {
				t.Errorf("without %v: %+v, want %+v", at, m, w)
			}
		}
		f.fakeMemory[at] = v
		n++
	}
	t.Logf("%d words", n)
}

// lessOf reports whether got is want, where ? stands for what is not known, or
// empty if not even its length is.
func lessOf(got, want []string, unknown bool) bool {
	if unknown {
		return len(got) == 0
	}
	return slices.EqualFunc(got, want, func(got, want string) bool {
		parts := regexp.MustCompile(`!!?\d+|\?`).Split(got, -1) // !0: a generic parameter without its name
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(want)
	})
}

// TestDescribeWithoutClass: dumps of stack overflows lack the MethodTable of
// the class whose method overflows. The module's map of methods leads to it.
func TestDescribeWithoutClass(t *testing.T) {
	f := newFakeTypes(t)
	md := f.method(0x66660000, ridMain, 0)
	other := f.method(0x66660000, ridMain, 0) // of an instantiation: in no map
	domain, table := f.room(1<<12), f.room(8*0x20)
	f.word(fakePointer(1), domain) // AppDomain
	list := field(domain, f.n.DomainList)
	f.put(field(list, f.n.ListCount), 1, 4)
	block := field(list, f.n.ListFirst)
	f.word(field(block, f.n.BlockNext), 0)
	f.put(field(block, f.n.BlockSize), 5, 4)
	// .NET 10 lists DomainAssemblies, which begin with the Assembly's address.
	f.word(field(block, f.n.BlockItems), f.list(fakeAssembly, 0, 0))
	m := field(fakeModule, f.n.ModMethods)
	f.word(field(m, f.n.MapNext), f.room(32))
	f.put(field(m, f.n.MapCount), 0x10, 4)
	f.word(field(m, f.n.MapTable), 0)
	m = f.next - 48
	f.word(field(m, f.n.MapNext), 0)
	f.put(field(m, f.n.MapCount), 0x20, 4)
	f.word(field(m, f.n.MapTable), table)
	for i := range arch.Addr(0x20) {
		f.word(table+8*i, 0)
	}
	f.word(table+8*(ridMain-0x10), md|1)
	const lost = 0x66670000 // a MethodDesc that is not there at all
	f.word(table+8*(ridMain-0x10+1), lost)

	r := fakeRuntime(t, f.core(t))
	got, err := r.MethodAt(md)
	if got.Name != "Program.Main" || got.Token != 0x06000011 || err != nil {
		t.Errorf("%+v, %v; want Program.Main", got, err)
	}
	got, err = r.MethodAt(lost)
	if got.Name != "Program.Define" || got.Token != 0x06000012 || err != nil {
		t.Errorf("%+v, %v; want Program.Define", got, err)
	}
	got, err = r.MethodAt(other)
	if got.Name != "" || got.Token != 0x06000011 || err == nil || !strings.Contains(err.Error(), "MethodTable") {
		t.Errorf("%+v, %v; want a token and an error for the MethodTable", got, err)
	}
}

// TestTypeCycle: a class that is its own generic argument, as in a damaged
// dump, has no name; nor have arguments without end.
func TestTypeCycle(t *testing.T) {
	f := newFakeTypes(t)
	mt := f.class(f.owner(t, ridMethod), 0x1000, 0x1000)
	list := f.next - 32
	f.word(list, mt)
	f.word(list+8, mt)
	d := f.room(48)
	f.put(field(d, f.n.DescFlags), descPointer, 4)
	f.word(field(d, f.n.DescArg), d|handleTypeDesc)
	r := fakeRuntime(t, f.core(t))
	for _, h := range []arch.Addr{mt, d | handleTypeDesc} {
		if name, err := r.TypeName(h); err == nil || len(name) > 1<<17 {
			t.Errorf("%v: a name of %d bytes, %v; want an error", h, len(name), err)
		}
	}
}
