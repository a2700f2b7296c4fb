package clr

import (
	"fmt"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/managed/code"
)

// maxSignature bounds a stored signature in bytes. Stubs have a byte or nine a
// parameter.
const maxSignature = 1 << 14

type methodResult struct {
	method code.Method
	err    error
}

// MethodAt names the method whose MethodDesc is md. An error says which part could
// not be read; what could be is in the Method all the same.
func (r *Runtime) MethodAt(md arch.Addr) (code.Method, error) {
	if m, ok := r.names.kept.methods.Load(md); ok {
		m := m.(methodResult)
		return m.method, m.err
	}
	d := newDescriber(r, md)
	d.describe()
	r.names.kept.methods.Store(md, methodResult{d.m, d.err})
	return d.m, d.err
}

// A describer fills one Method.
type describer struct {
	r   *Runtime
	m   code.Method
	err error // the first
}

func newDescriber(r *Runtime, md arch.Addr) describer {
	return describer{r: r, m: code.Method{ID: md, Unknown: code.PartTypeArgs | code.PartMethodArgs | code.PartParams}}
}

// known says that parts of the method have been found out.
func (d *describer) known(p code.Parts) { d.m.Unknown &^= p }

func (d *describer) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("the method at %v: %w", d.m.ID, err)
	}
}

func (d *describer) describe() {
	r, md, n := d.r, d.m.ID, &d.r.names
	flags3, ok1 := r.u16(field(md, n.MDFlags3))
	index, ok2 := r.u8(field(md, n.MDIndex))
	flags, ok3 := r.u16(field(md, n.MDFlags))
	if !ok1 || !ok2 || !ok3 {
		d.lost()
		return
	}
	chunk := r.chunk(md, index)
	high, ok1 := r.u16(field(chunk, n.ChunkRange))
	mt, ok2 := r.word(field(chunk, n.ChunkMT))
	if !ok1 || !ok2 || mt == 0 {
		d.lost()
		return
	}
	switch flags & classMask {
	case classDynamic:
		d.dynamic(arch.Addr(mt))
		return
	case classArray:
		d.array(arch.Addr(mt))
		return
	}
	rid := uint32(high)&(1<<(tokenRowBits-n.tokenBits)-1)<<n.tokenBits | uint32(flags3)&(1<<n.tokenBits-1)
	d.m.Token = uint32(ecma.MethodDef)<<tokenRowBits | rid
	if flags&classMask == classInstantiated {
		d.methodArgs()
	} else {
		d.known(code.PartMethodArgs)
	}
	d.declared(arch.Addr(mt), rid)
}

// lost names a method whose MethodDesc the dump lacks, if a module's map of
// methods has it. Those of generic instantiations are in no such map.
func (d *describer) lost() {
	def, ok := d.r.definition(d.m.ID)
	if d.m.ID == 0 || !ok {
		d.fail(missing("its MethodDesc, or the head of that one's chunk,", d.m.ID))
		return
	}
	d.m.Token = uint32(ecma.MethodDef)<<tokenRowBits | def.rid
	d.known(code.PartTypeArgs | code.PartMethodArgs)
	d.named(d.r.module(def.mod), 0, def.rid)
}

// declared names a method that metadata declares.
func (d *describer) declared(mt arch.Addr, rid uint32) {
	n := &d.r.names
	var mod *module
	if v, ok := d.r.word(field(mt, n.MTModule)); ok {
		mod = d.r.module(arch.Addr(v))
		d.typeArgs(mt)
	} else {
		// The dump of a stack overflow lacks MethodTables of classes whose
		// methods are on the stack (.NET 10); the module knows its methods too.
		d.fail(missing("the MethodTable of its class", mt))
		if mod = d.r.moduleOf(d.m.ID, rid); mod == nil {
			return
		}
		d.err = nil
		d.known(code.PartTypeArgs)
	}
	owner, _ := d.r.typeRow(mt)
	d.named(mod, owner, rid)
}

// named fills Module, Name and Params from metadata; owner is the TypeDef row
// of the class, 0 if only the metadata can tell.
func (d *describer) named(mod *module, owner, rid uint32) {
	d.m.Module, d.m.ModuleBase = mod.name, mod.base
	if mod.err != nil {
		d.fail(mod.err)
		return
	}
	meta := mod.meta
	if owner == 0 {
		var err error
		if owner, err = meta.Owner(rid); err != nil {
			d.fail(err)
			return
		}
	}
	token := ecma.Token(ecma.TypeDef)<<tokenRowBits | ecma.Token(owner)
	class, err := meta.TypeName(token)
	d.fail(err)
	row, err := meta.Method(rid)
	d.fail(err)
	if class == "" || row.Name == "" {
		return
	}
	d.m.Name = class + "." + row.Name
	d.m.TypeArgs = d.count(code.PartTypeArgs, d.m.TypeArgs, meta, token)
	d.m.MethodArgs = d.count(code.PartMethodArgs, d.m.MethodArgs, meta, ecma.Token(d.m.Token))
	if row.Signature != nil {
		d.params(meta, row.Signature, ecma.Scope{Type: token, Method: ecma.Token(d.m.Token)})
	}
}

// count returns list, or if it is not known as many times "?" as metadata has
// generic parameters for owner.
func (d *describer) count(p code.Parts, list []string, meta *ecma.Metadata, owner ecma.Token) []string {
	if d.m.Unknown&p == 0 {
		return list
	}
	n, err := meta.GenericParams(owner)
	if err != nil || n > maxTypeArgs {
		d.fail(err)
		return nil
	}
	d.known(p)
	return csharp(slices.Repeat([]ecma.Type{unknownType}, n))
}

// params fills Params from a signature.
func (d *describer) params(meta *ecma.Metadata, sig []byte, scope ecma.Scope) {
	scope.Handle = d.r.typeOf
	s, err := meta.MethodSig(sig, scope)
	d.fail(err)
	if !s.Cut {
		d.m.Params = csharp(s.Params)
		d.known(code.PartParams)
	}
}

// maxTypesText bounds the text of one list of types, in bytes: two bytes of a
// signature may name a type whose name takes pages. Those beyond it are "?".
const maxTypesText = 1 << 16

func csharp(ts []ecma.Type) []string {
	if len(ts) == 0 {
		return nil
	}
	s := make([]string, len(ts))
	left := maxTypesText
	for i, t := range ts {
		if left <= 0 {
			t = unknownType
		}
		s[i] = t.CSharp()
		left -= len(s[i])
	}
	return s
}

// typeArgs fills TypeArgs from the class that declares the method.
func (d *describer) typeArgs(mt arch.Addr) {
	flags, ok := d.r.u32(field(mt, d.r.names.MTFlags))
	if !ok {
		d.fail(missing("the MethodTable of its class", field(mt, d.r.names.MTFlags)))
		return
	}
	if flags&mtComponentSize != 0 || flags&mtGenerics == 0 || flags&mtGenerics == mtOpen {
		d.known(code.PartTypeArgs)
		return
	}
	w := typeWalk{r: d.r, left: maxTypeNodes}
	if args := w.args(mt, 0); args != nil {
		d.m.TypeArgs = csharp(args)
		d.known(code.PartTypeArgs)
	}
	d.fail(w.err)
}

// methodArgs fills MethodArgs of an InstantiatedMethodDesc. It may be one for
// the generic arguments of its type alone.
func (d *describer) methodArgs() {
	n := &d.r.names
	flags, ok1 := d.r.u16(field(d.m.ID, n.InstFlags))
	count, ok2 := d.r.u16(field(d.m.ID, n.InstCount))
	list, ok3 := d.r.word(field(d.m.ID, n.InstArgs))
	if !ok1 || !ok2 || !ok3 {
		d.fail(missing("its generic arguments", field(d.m.ID, n.InstArgs)))
		return
	}
	if count > maxTypeArgs {
		d.fail(fmt.Errorf("its generic arguments are broken"))
		return
	}
	d.known(code.PartMethodArgs)
	if flags&instKind == instDefinition || list == 0 {
		return
	}
	w := typeWalk{r: d.r, left: maxTypeNodes}
	d.m.MethodArgs = csharp(w.list(arch.Addr(list), int(count), 0))
	d.fail(w.err)
}

// dynamic names an IL stub or a DynamicMethod. Its class is a dummy of the
// module it was made for; dynamicClass is what the runtime's own traces print.
func (d *describer) dynamic(mt arch.Addr) {
	n := &d.r.names
	d.m.Dynamic = true
	d.known(code.PartTypeArgs | code.PartMethodArgs)
	flags, ok := d.r.u32(field(d.m.ID, n.SigFlags))
	if !ok {
		d.fail(missing("its kind", field(d.m.ID, n.SigFlags)))
	}
	d.m.ILStub = flags&sigILStub != 0
	p, ok := d.r.word(field(d.m.ID, n.DynName))
	if !ok {
		d.fail(missing("the address of its name", field(d.m.ID, n.DynName)))
	} else if name, ok := ecma.CString(d.r.mem, arch.Addr(p), maxPath); ok {
		d.m.Name = "dynamicClass." + name
	} else {
		d.fail(missing("its name", arch.Addr(p)))
	}
	if mod := d.moduleOfClass(mt); mod != nil {
		d.stored(mod, ecma.Scope{})
	}
}

// moduleOfClass fills Module from a MethodTable; nil if it is not at hand.
func (d *describer) moduleOfClass(mt arch.Addr) *module {
	v, ok := d.r.word(field(mt, d.r.names.MTModule))
	if !ok {
		d.fail(missing("the MethodTable of its class", field(mt, d.r.names.MTModule)))
		return nil
	}
	mod := d.r.module(arch.Addr(v))
	d.m.Module = mod.name
	return mod
}

// stored fills Params from the signature that a MethodDesc without metadata
// carries.
func (d *describer) stored(mod *module, scope ecma.Scope) {
	n := &d.r.names
	sig, ok1 := d.r.word(field(d.m.ID, n.SigAt))
	size, ok2 := d.r.u32(field(d.m.ID, n.SigSize))
	if !ok1 || !ok2 {
		d.fail(missing("its signature", field(d.m.ID, n.SigAt)))
		return
	}
	if sig == 0 || size == 0 || size > maxSignature {
		if size <= maxSignature {
			d.known(code.PartParams)
		}
		return
	}
	b := d.r.mem.View(arch.Addr(sig), int(size))
	if b == nil {
		d.fail(missing("its signature", arch.Addr(sig)))
		return
	}
	if mod.err != nil {
		d.fail(mod.err)
		return
	}
	d.params(mod.meta, b, scope)
}

// array names a method that the runtime makes for an array type, by its slot
// behind those that System.Array has (ArrayMethodDesc::GetName).
func (d *describer) array(mt arch.Addr) {
	n := &d.r.names
	d.known(code.PartTypeArgs | code.PartMethodArgs)
	t, err := d.r.typeOf(mt)
	d.fail(err)
	slot, ok1 := d.r.u16(field(d.m.ID, n.MDSlot))
	parent, ok2 := d.r.word(field(mt, n.MTParent))
	if !ok1 || !ok2 {
		d.fail(missing("the slot of an array's method", field(mt, n.MTParent)))
		return
	}
	virtuals, ok := d.r.u16(field(arch.Addr(parent), n.MTVirtuals))
	if !ok {
		d.fail(missing("the MethodTable of System.Array", arch.Addr(parent)))
		return
	}
	name := ".ctor"
	if i := int(slot) - int(virtuals); i >= 0 && i < 3 {
		name = [...]string{"Get", "Set", "Address"}[i]
	}
	if err == nil {
		d.m.Name = t.String() + "." + name
	}
	if mod := d.moduleOfClass(mt); mod != nil {
		// The signature is written for any array: its element is !0.
		d.stored(mod, ecma.Scope{TypeArgs: t.Args})
	}
}
