package ecma

import "fmt"

// maxNesting bounds how deep types may be nested in each other, and
// maxFullName how long the name of such a one may be, in bytes.
const (
	maxNesting  = 64
	maxFullName = 1 << 14
)

// TypeName returns the full name of a TypeDef or TypeRef:
// Namespace.Outer+Inner`1, as reflection spells it but without escapes.
func (m *Metadata) TypeName(t Token) (string, error) {
	name := ""
	for range maxNesting {
		part, outer, err := m.part(t)
		if err != nil {
			return "", err
		}
		if name != "" {
			part += "+" + name
		}
		name = part
		if outer == 0 {
			return name, nil
		}
		if len(name) > maxFullName {
			break
		}
		t = outer
	}
	return "", &Error{"a type nested without end", m.at, false}
}

// part returns the name of one type and the token of the one it is nested in,
// or 0.
func (m *Metadata) part(t Token) (name string, outer Token, err error) {
	var r row
	switch t.Table() {
	case TypeDef:
		if r, err = m.row(TypeDef, t.Row()); err != nil {
			return "", 0, err
		}
		rid, err := m.enclosing(t.Row())
		if err != nil {
			return "", 0, err
		}
		if rid != 0 {
			outer = Token(TypeDef)<<24 | Token(rid)
		}
	case TypeRef:
		if r, err = m.row(TypeRef, t.Row()); err != nil {
			return "", 0, err
		}
		if tab, rid := decode(resolutionScope, r.col(0)); tab == TypeRef && rid != 0 {
			outer = Token(TypeRef)<<24 | Token(rid)
		}
	default:
		return "", 0, fmt.Errorf("%#08x is no type's token", uint32(t))
	}
	if name, err = m.text(r.col(1)); err != nil {
		return "", 0, err
	}
	space, err := m.text(r.col(2))
	if err != nil {
		return "", 0, err
	}
	if space != "" {
		name = space + "." + name
	}
	return name, outer, nil
}
