package ecma

import "fmt"

// An Instance is a generic method with its generic arguments, as the table of
// instance entry points of a ReadyToRun image has it
// (docs/design/coreclr/botr/readytorun-format.md, Method Signatures).
type Instance struct {
	Row   uint32 // MethodDef row of the method
	Owner Token  // TypeDef token of the class that declares it
	// TypeArgs are the generic arguments of the class, MethodArgs the method's
	// own. What cannot be named is "?".
	TypeArgs, MethodArgs []Type
}

// Flags that a method signature of a ReadyToRun image begins with
// (ReadyToRunMethodSigFlags of the same document).
const (
	instanceUnboxing      = 0x01
	instanceInstantiating = 0x02
	instanceMethodArgs    = 0x04
	instanceOwner         = 0x40
)

// Element types that ReadyToRun images add to those of signatures
// (src/coreclr/inc/corhdr.h, ELEMENT_TYPE_*_ZAPSIG).
const (
	elemZapNativeValue = 0x3d
	elemZapCanon       = 0x3e // System.__Canon
	elemZapModule      = 0x3f // the type is another module's, which a number names
)

// Instance decodes the signature at the beginning of sig, of a method of m. An
// error is a signature of a form that is not known, or one of a method of
// another module.
func (m *Metadata) Instance(sig []byte) (Instance, error) {
	d := decoder{m: m, b: sig, scope: Scope{readyToRun: true}, nodes: maxNodes}
	s, ok := d.instance()
	if !ok {
		return Instance{}, d.err
	}
	owner, err := m.Owner(s.in.Row)
	if err != nil {
		return Instance{}, err
	}
	class := Token(TypeDef)<<24 | Token(owner)
	same := s.in.Owner == class && !s.other
	if s.in.Owner == 0 && !s.other {
		// A signature leaves out the class of a generic method if that is not
		// generic itself, and has no token where it is string or the like.
		name, err := m.TypeName(class)
		same = s.class == "" || err == nil && s.class == name
	}
	if !same {
		return Instance{}, fmt.Errorf("a method signature has a method of another class")
	}
	s.in.Owner = class
	return s.in, nil
}

// InstanceSize returns the MethodDef row and the size in bytes of the signature
// that sig begins with, and false if its form is not known.
func InstanceSize(sig []byte) (row uint32, size int, ok bool) {
	d := decoder{b: sig, scope: Scope{readyToRun: true}, nodes: maxNodes, alien: true}
	s, ok := d.instance()
	return s.in.Row, len(sig) - len(d.b), ok
}

// An instanceSig is a signature as it stands.
type instanceSig struct {
	in    Instance
	class string // the class, where it is one that signatures have no token for
	other bool   // the tokens are those of another module
}

func (d *decoder) instance() (s instanceSig, ok bool) {
	flags := d.number()
	if flags&^(instanceUnboxing|instanceInstantiating|instanceMethodArgs|instanceOwner) != 0 {
		d.fail(fmt.Errorf("a method signature has flags %#x", flags))
	}
	if flags&instanceOwner != 0 {
		d.owner(&s)
	}
	s.in.Row = d.number()
	if flags&instanceMethodArgs != 0 {
		s.in.MethodArgs = d.types()
	}
	return s, !d.ended
}

// owner reads the class that declares a method.
func (d *decoder) owner(s *instanceSig) {
	e := d.byte()
	if s.other = e == elemZapModule; s.other {
		d.number()
		d.alien = true
		e = d.byte()
	}
	generic := e == elemGenericInst
	if generic {
		e = d.byte()
	}
	if s.class = SimpleName(e); s.class == "" {
		t, rid := decode(typeDefOrRef, d.number())
		if e != elemClass && e != elemValueType || t != TypeDef {
			d.fail(fmt.Errorf("a method signature does not begin with a class"))
		}
		s.in.Owner = Token(TypeDef)<<24 | Token(rid)
	}
	if generic {
		s.in.TypeArgs = d.types()
	}
}

// types reads a number and as many types.
func (d *decoder) types() (ts []Type) {
	for n := d.number(); n > 0 && !d.ended; n-- {
		ts = append(ts, d.typ(1))
	}
	return ts
}
