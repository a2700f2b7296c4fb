package clr

import (
	"fmt"
	"slices"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/ecma"
)

// nameLayout is where the runtime keeps what names are made of
// (docs/design/datacontracts/RuntimeTypeSystem.md, Loader.md, Object.md).
type nameLayout struct {
	MDFlags3 int `c:"MethodDesc.Flags3AndTokenRemainder"`
	MDIndex  int `c:"MethodDesc.ChunkIndex"`
	MDSlot   int `c:"MethodDesc.Slot"`
	MDFlags  int `c:"MethodDesc.Flags"`
	MDSize   int `c:"MethodDesc.!"`

	ChunkSize  int `c:"MethodDescChunk.!"`
	ChunkMT    int `c:"MethodDescChunk.MethodTable"`
	ChunkRange int `c:"MethodDescChunk.FlagsAndTokenRange"`

	InstArgs  int `c:"InstantiatedMethodDesc.PerInstInfo"`
	InstFlags int `c:"InstantiatedMethodDesc.Flags2"`
	InstCount int `c:"InstantiatedMethodDesc.NumGenericArgs"`

	SigAt    int `c:"StoredSigMethodDesc.Sig"`
	SigSize  int `c:"StoredSigMethodDesc.cSig"`
	SigFlags int `c:"StoredSigMethodDesc.ExtendedFlags"`
	DynName  int `c:"DynamicMethodDesc.MethodName"`

	MTFlags    int `c:"MethodTable.MTFlags"`
	MTFlags2   int `c:"MethodTable.MTFlags2"`
	MTVirtuals int `c:"MethodTable.NumVirtuals"`
	MTParent   int `c:"MethodTable.ParentMethodTable"`
	MTModule   int `c:"MethodTable.Module"`
	MTClass    int `c:"MethodTable.EEClassOrCanonMT"`
	MTArgs     int `c:"MethodTable.PerInstInfo"`
	ClassMT    int `c:"EEClass.MethodTable"`
	ClassRank  int `c:"ArrayClass.Rank"`
	DictCount  int `c:"GenericsDictInfo.NumDicts"`
	DictArgs   int `c:"GenericsDictInfo.NumTypeArgs"`

	DescFlags int `c:"TypeDesc.TypeAndFlags"`
	DescArg   int `c:"ParamTypeDesc.TypeArg"`
	FnCount   int `c:"FnPtrTypeDesc.NumArgs"`
	FnTypes   int `c:"FnPtrTypeDesc.RetAndArgTypes"`
	VarModule int `c:"TypeVarTypeDesc.Module"`
	VarToken  int `c:"TypeVarTypeDesc.Token"`

	ModBase    int `c:"Module.Base"`
	ModDynamic int `c:"Module.DynamicMetadata"`
	ModPath    int `c:"Module.Path"`
	ModFile    int `c:"Module.FileName,optional"` // not in the descriptor of .NET 9
	ModName    int `c:"Module.SimpleName,optional"`
	DynSize    int `c:"DynamicMetadata.Size"`
	DynBytes   int `c:"DynamicMetadata.Data"`

	ModMethods int `c:"Module.MethodDefToDescMap"` // a ModuleLookupMap by row
	MapNext    int `c:"ModuleLookupMap.Next"`
	MapTable   int `c:"ModuleLookupMap.TableData"`
	MapCount   int `c:"ModuleLookupMap.Count"`
	// .NET 9 has no list of assemblies in its descriptor.
	DomainList  int `c:"AppDomain.DomainAssemblyList,optional"`
	ListCount   int `c:"ArrayListBase.Count"`
	ListFirst   int `c:"ArrayListBase.FirstBlock"`
	BlockNext   int `c:"ArrayListBlock.Next"`
	BlockSize   int `c:"ArrayListBlock.Size"`
	BlockItems  int `c:"ArrayListBlock.ArrayStart"`
	AssemblyMod int `c:"Assembly.Module"`
	ModAssembly int `c:"Module.Assembly"`

	HdrDebugInfo int `c:"RealCodeHeader.DebugInfo"`
	R2RMajor     int `c:"ReadyToRunHeader.MajorVersion"`

	ObjectMT   int `c:"Object.m_pMethTab"`
	StringSize int `c:"String.m_StringLength"`
	StringText int `c:"String.m_FirstChar"`
	ExcMessage int `c:"Exception._message"`
	ExcHResult int `c:"Exception._HResult"`
	ExcThrown  int `c:"ExceptionInfo.ThrownObject"`
	ExcPrev    int `c:"ExceptionInfo.PreviousNestedInfo"`
	ExcObject  int `c:"ExceptionInfo.m_exception,optional"`
}

// names is what a Runtime keeps to name methods and types.
type names struct {
	nameLayout
	exceptionLayout
	threadNameLayout
	older     *olderLayout // of .NET 8; nil for later ones
	tokenBits uint64       // bits of a token that a MethodDesc holds; its chunk has the rest
	align     uint64       // unit of MethodDesc.ChunkIndex, in bytes
	kept      *nameCache
}

// A nameCache keeps what was read once, by the address of its structure:
// Modules (*module), types (typeResult), methods (methodResult).
type nameCache struct {
	modules, types, methods sync.Map

	reverse     bin.Once
	definitions map[arch.Addr]definition // by MethodDesc; see Runtime.definition
}

// newNames resolves layouts; it reads nothing of the process. lacks is what the
// contract does not give.
func newNames(r *Runtime) (n names, lacks []string) {
	n = names{kept: new(nameCache)}
	lacks = n.fillOlder(r.data, r.data.fill(&n.nameLayout))
	lacks = append(lacks, r.data.fill(&n.exceptionLayout)...)
	lacks = append(lacks, r.data.fill(&n.threadNameLayout)...)
	const tokens = "MethodDescTokenRemainderBitCount"
	var ok bool
	if n.tokenBits, ok = r.data.global(tokens); !ok || n.tokenBits > tokenRowBits {
		// Without it a MethodDesc does not tell which method it is.
		n.MDFlags3, lacks = nowhere, append(lacks, tokens)
	}
	const alignment = "MethodDescAlignment"
	if n.align, ok = r.data.global(alignment); !ok {
		// Nor is known how far before it the head of its chunk lies.
		n.MDIndex, lacks = nowhere, append(lacks, alignment)
	}
	return n, lacks
}

// Bits of a TypeHandle, of MethodTable's flags and of a TypeDesc
// (src/coreclr/vm/typehandle.h, methodtable.h, typedesc.h of .NET 8 to 10).
const (
	handleTypeDesc = 2 // a TypeHandle with this bit set points to a TypeDesc

	mtComponentSize = 0x80000000 // the low half is a component's size, not flags
	mtCategory      = 0x000c0000
	mtArray         = 0x00080000 // a category
	mtVector        = 0x00020000 // of an array: one-dimensional, from 0
	mtGenerics      = 0x00000030 // 0: not generic
	mtOpen          = 0x00000030 // the generic definition itself
	mtCanonBit      = 1          // EEClassOrCanonMT is the canonical MethodTable

	descPointer = 0x0f // CorElementType in the low byte of TypeAndFlags
	descByRef   = 0x10
	descVar     = 0x13
	descFn      = 0x1b
	descMVar    = 0x1e
)

// Bounds of one type: how deep generic arguments may nest in each other, how
// many types one may be made of, and how many arguments one may have.
const (
	maxTypeDepth = 32
	maxTypeNodes = 1024
	maxTypeArgs  = 256
)

type typeResult struct {
	typ ecma.Type
	err error
}

// typeOf names the type that a TypeHandle stands for. What could not be read
// of it is "?".
func (r *Runtime) typeOf(h arch.Addr) (ecma.Type, error) {
	if t, ok := r.names.kept.types.Load(h); ok {
		t := t.(typeResult)
		return t.typ, t.err
	}
	w := typeWalk{r: r, left: maxTypeNodes}
	t := typeResult{typ: w.handle(h, 0)}
	t.err = w.err
	r.names.kept.types.Store(h, t)
	return t.typ, t.err
}

// TypeName returns the full name of the type whose MethodTable (or TypeHandle)
// is mt, as its Type.ToString gives it: Namespace.Outer+Inner`1[System.Int32].
func (r *Runtime) TypeName(mt arch.Addr) (string, error) {
	t, err := r.typeOf(mt)
	return t.String(), err
}

// A typeWalk reads one type and those it is made of.
type typeWalk struct {
	r    *Runtime
	left int
	err  error // the first
}

var unknownType = ecma.Type{Name: "?"}

func (w *typeWalk) fail(err error) ecma.Type {
	if w.err == nil {
		w.err = err
	}
	return unknownType
}

func (w *typeWalk) handle(h arch.Addr, depth int) ecma.Type {
	if w.left--; w.left < 0 || depth > maxTypeDepth {
		return w.fail(fmt.Errorf("the type at %v nests without end", h))
	}
	if h&handleTypeDesc != 0 {
		return w.desc(h&^handleTypeDesc, depth)
	}
	n := &w.r.names
	flags, ok := w.r.u32(field(h, n.MTFlags))
	if !ok {
		return w.fail(missing("a MethodTable", field(h, n.MTFlags)))
	}
	if flags&mtCategory == mtArray {
		return w.array(h, flags, depth)
	}
	name, err := w.r.className(h)
	if err != nil {
		return w.fail(err)
	}
	t := ecma.Type{Name: name}
	if flags&mtComponentSize == 0 && flags&mtGenerics != 0 && flags&mtGenerics != mtOpen {
		if t.Args = w.args(h, depth); t.Args == nil {
			t.Args = slices.Repeat([]ecma.Type{unknownType}, max(1, ecma.Arity(name)))
		}
	}
	return t
}

// className returns the name of a class without generic arguments.
func (r *Runtime) className(mt arch.Addr) (string, error) {
	n := &r.names
	mod, ok := r.word(field(mt, n.MTModule))
	if !ok {
		return "", missing("the module of a MethodTable", field(mt, n.MTModule))
	}
	row, lost := r.typeRow(mt)
	switch {
	case lost != 0:
		return "", missing("the token of a MethodTable", lost)
	case row == 0 && n.older != nil:
		return "", fmt.Errorf("the token of the MethodTable at %v is not in it", mt)
	}
	m := r.module(arch.Addr(mod))
	if m.err != nil {
		return "", m.err
	}
	name, err := m.meta.TypeName(ecma.Token(ecma.TypeDef)<<24 | ecma.Token(row))
	if err != nil {
		err = fmt.Errorf("module %s: %w", orUnknown(m.name), err)
	}
	return name, err
}

func (w *typeWalk) array(mt arch.Addr, flags uint32, depth int) ecma.Type {
	n := &w.r.names
	// An array has its element's TypeHandle where others have their dictionaries.
	elem, ok := w.r.word(field(mt, n.MTArgs))
	if !ok {
		return w.fail(missing("the element type of an array", field(mt, n.MTArgs)))
	}
	t := ecma.Type{Shape: ecma.Vector, Args: []ecma.Type{w.handle(arch.Addr(elem), depth+1)}}
	if flags&mtVector == 0 {
		class, err := w.r.class(mt)
		if err != nil {
			return w.fail(err)
		}
		rank, ok := w.r.u8(field(class, n.ClassRank))
		if !ok {
			return w.fail(missing("the rank of an array", field(class, n.ClassRank)))
		}
		t.Shape, t.Rank = ecma.Array, int(rank)
	}
	return t
}

// class returns the EEClass of a MethodTable, which it shares with its
// canonical one.
func (r *Runtime) class(mt arch.Addr) (arch.Addr, error) {
	at := field(mt, r.names.MTClass)
	v, ok := r.word(at)
	if ok && v&mtCanonBit != 0 {
		at = field(arch.Addr(v&^mtCanonBit), r.names.MTClass)
		v, ok = r.word(at)
	}
	if !ok {
		return 0, missing("the class of a MethodTable", at)
	}
	return arch.Addr(v), nil
}

// args returns the generic arguments of a MethodTable. It has one dictionary
// for each generic class it derives from; its own is the last, and begins with
// the arguments (GenericsDictInfo lies before the array of dictionaries). It
// returns nil if not even their number can be read.
func (w *typeWalk) args(mt arch.Addr, depth int) []ecma.Type {
	n := &w.r.names
	dicts, ok := w.r.word(field(mt, n.MTArgs))
	if !ok {
		w.fail(missing("the generic arguments of a MethodTable", field(mt, n.MTArgs)))
		return nil
	}
	info := arch.Addr(dicts) - 8
	count, ok1 := w.r.u16(field(info, n.DictCount))
	size, ok2 := w.r.u16(field(info, n.DictArgs))
	if !ok1 || !ok2 {
		w.fail(missing("the generic arguments of a MethodTable", info))
		return nil
	}
	if count == 0 || size > maxTypeArgs {
		w.fail(fmt.Errorf("the generic arguments of the MethodTable at %v are broken", mt))
		return nil
	}
	at := arch.Addr(dicts) + 8*arch.Addr(count-1)
	list, ok := w.r.word(at)
	if !ok {
		w.fail(missing("the generic arguments of a MethodTable", at))
		return slices.Repeat([]ecma.Type{unknownType}, int(size))
	}
	return w.list(arch.Addr(list), int(size), depth)
}

// list reads n TypeHandles.
func (w *typeWalk) list(at arch.Addr, n, depth int) []ecma.Type {
	ts := make([]ecma.Type, 0, n)
	for i := range n {
		h, ok := w.r.word(at + 8*arch.Addr(i))
		if !ok {
			ts = append(ts, w.fail(missing("a generic argument", at+8*arch.Addr(i))))
			continue
		}
		ts = append(ts, w.handle(arch.Addr(h), depth+1))
	}
	return ts
}

// desc names the type of a TypeDesc: a pointer, a reference, a generic
// parameter, a function pointer.
func (w *typeWalk) desc(d arch.Addr, depth int) ecma.Type {
	n := &w.r.names
	kind, ok := w.r.u8(field(d, n.DescFlags))
	if !ok {
		return w.fail(missing("a TypeDesc", field(d, n.DescFlags)))
	}
	switch kind {
	case descPointer, descByRef:
		h, ok := w.r.word(field(d, n.DescArg))
		if !ok {
			return w.fail(missing("what a pointer type points at", field(d, n.DescArg)))
		}
		t := ecma.Type{Shape: ecma.Pointer, Args: []ecma.Type{w.handle(arch.Addr(h), depth+1)}}
		if kind == descByRef {
			t.Shape = ecma.ByRef
		}
		return t
	case descVar, descMVar:
		mod, ok1 := w.r.word(field(d, n.VarModule))
		token, ok2 := w.r.u32(field(d, n.VarToken))
		if !ok1 || !ok2 {
			return w.fail(missing("a generic parameter", field(d, n.VarModule)))
		}
		m := w.r.module(arch.Addr(mod))
		if m.err != nil {
			return w.fail(m.err)
		}
		name, err := m.meta.GenericParamName(ecma.Token(token).Row())
		if err != nil {
			return w.fail(err)
		}
		return ecma.Type{Name: name}
	case descFn:
		count, ok := w.r.u32(field(d, n.FnCount))
		if !ok || count > maxTypeArgs {
			return w.fail(fmt.Errorf("the function pointer type at %v is missing or broken", d))
		}
		return ecma.Type{Shape: ecma.Function, Args: w.list(field(d, n.FnTypes), int(count)+1, depth)}
	}
	return w.fail(fmt.Errorf("the TypeDesc at %v has an unknown kind %#x", d, kind))
}
