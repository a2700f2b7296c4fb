package ecma

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A Token names a row: the table in its high byte, the row number below.
type Token uint32

// Table returns the table of the row.
func (t Token) Table() Table { return Table(t >> 24) }

// Row returns the number of the row, from 1; 0 is no row.
func (t Token) Row() uint32 { return uint32(t) & 0xffffff }

// A Method is a row of MethodDef (II.22.26).
type Method struct {
	Name      string
	RVA       uint32 // of its IL in the image; 0 if it has none
	Flags     uint16
	Signature []byte // II.23.2.1
	params    uint32 // its first row of Param
}

// Method reads row rid of MethodDef.
func (m *Metadata) Method(rid uint32) (Method, error) {
	r, err := m.row(MethodDef, rid)
	if err != nil {
		return Method{}, err
	}
	d := Method{RVA: r.col(0), Flags: uint16(r.col(2)), params: r.col(5)}
	if d.Name, err = m.text(r.col(3)); err != nil {
		return d, err
	}
	d.Signature, err = m.blob(r.col(4))
	return d, err
}

// Owner returns the TypeDef row of the class that declares MethodDef row rid:
// the last one whose MethodList begins at or before it (II.22.37).
func (m *Metadata) Owner(rid uint32) (uint32, error) {
	if rid == 0 || rid > m.Rows(MethodDef) {
		return 0, &Error{fmt.Sprintf("a method's row number, %d of %d,", rid, m.Rows(MethodDef)), m.at, false}
	}
	// Uncompressed streams, which emitted code may have, go through a table
	// that gives each place in the list its MethodDef row, in any order.
	if m.Rows(MethodPtr) > 0 {
		place, err := m.methods.row(m, MethodPtr, 0, rid)
		if err != nil {
			return 0, err
		}
		if place != 0 {
			rid = place
		}
	}
	n, err := m.after(TypeDef, 5, rid)
	if err != nil {
		return 0, err
	}
	if n == 1 {
		return 0, &Error{"the list of types", m.at + arch.Addr(m.tables[TypeDef].off), false}
	}
	return n - 1, nil
}

// after returns the first row of t whose column c is above v, one more than
// there are rows if none is. The column is sorted and refers to rows, of which
// none has the number 0. One that is out of order is an error, because a
// search through damaged bytes would give some other name.
func (m *Metadata) after(t Table, c int, v uint32) (uint32, error) {
	lo, hi := uint32(1), m.Rows(t)+1
	low, high := uint32(1), ^uint32(0)
	for lo < hi {
		i := lo + (hi-lo)/2
		r, err := m.row(t, i)
		if err != nil {
			return 0, err
		}
		switch k := r.col(c); {
		case k < low || k > high:
			return 0, &Error{fmt.Sprintf("the order of row %d of a table", i), m.at + arch.Addr(m.tables[t].off), false}
		case k <= v:
			lo, low = i+1, k
		default:
			hi, high = i, k
		}
	}
	return lo, nil
}

// enclosing returns the TypeDef row of the class that row rid is nested in,
// or 0.
func (m *Metadata) enclosing(rid uint32) (uint32, error) {
	i, err := m.find(NestedClass, 0, rid, &m.nested)
	if i == 0 {
		return 0, err
	}
	r, err := m.row(NestedClass, i)
	if err != nil {
		return 0, err
	}
	return r.col(1), nil
}

// find returns the first row of t whose column c is v, or 0. Such tables are
// sorted (II.22), but emitted metadata may leave them in the order of emission
// and then does not set their bit.
func (m *Metadata) find(t Table, c int, v uint32, l *lookup) (uint32, error) {
	if m.sorted>>t&1 == 0 {
		return l.row(m, t, c, v)
	}
	if v == 0 {
		return 0, nil
	}
	i, err := m.after(t, c, v-1)
	if err != nil || i > m.Rows(t) {
		return 0, err
	}
	if r, err := m.row(t, i); err != nil || r.col(c) != v {
		return 0, err
	}
	return i, nil
}

// A lookup finds rows by a column that is in no order. It reads the column
// once, as far as there are bytes, so that hostile metadata cannot make every
// name cost a whole table.
type lookup struct {
	once  bin.Once
	first map[uint32]uint32 // from value to row
	err   error
}

// row returns the first row of t whose column c is v, or 0.
func (l *lookup) row(m *Metadata, t Table, c int, v uint32) (uint32, error) {
	l.once.Do(func() {
		l.first = map[uint32]uint32{}
		for i := range m.Rows(t) {
			r, err := m.row(t, i+1)
			if err != nil {
				l.err = err
				return
			}
			if _, ok := l.first[r.col(c)]; !ok {
				l.first[r.col(c)] = i + 1
			}
		}
	})
	if i := l.first[v]; i != 0 {
		return i, nil
	}
	return 0, l.err
}

// GenericParam returns the name of generic parameter number n of a type or
// method (a TypeDef or MethodDef token).
func (m *Metadata) GenericParam(owner Token, n uint32) (string, error) {
	v := owner.Row() << 1
	if owner.Table() == MethodDef {
		v |= 1
	}
	i, err := m.find(GenericParam, 2, v, &m.params)
	if i == 0 {
		return "", err
	}
	// Sorted by owner, then by number (II.22.20).
	r, err := m.row(GenericParam, i+n)
	if err != nil || r.col(0) != n || r.col(2) != v {
		return "", err
	}
	return m.text(r.col(3))
}

// GenericParams returns how many generic parameters a type or method has (a
// TypeDef or MethodDef token).
func (m *Metadata) GenericParams(owner Token) (n int, err error) {
	v := owner.Row() << 1
	if owner.Table() == MethodDef {
		v |= 1
	}
	i, err := m.find(GenericParam, 2, v, &m.params)
	if i == 0 {
		return 0, err
	}
	for ; i <= m.Rows(GenericParam); i++ {
		r, err := m.row(GenericParam, i)
		if err != nil {
			return 0, err
		}
		if r.col(2) != v {
			break
		}
		n++
	}
	return n, nil
}

// GenericParamName returns the name of a row of GenericParam.
func (m *Metadata) GenericParamName(rid uint32) (string, error) {
	r, err := m.row(GenericParam, rid)
	if err != nil {
		return "", err
	}
	return m.text(r.col(3))
}

// Name returns the name of the module, a file name.
func (m *Metadata) Name() (string, error) {
	r, err := m.row(Module, 1)
	if err != nil {
		return "", err
	}
	return m.text(r.col(1))
}

// MVID returns the module version id as a GUID in upper-case hex without
// separators, as symbol servers spell it.
func (m *Metadata) MVID() (string, error) {
	r, err := m.row(Module, 1)
	if err != nil {
		return "", err
	}
	i := r.col(2) // numbered from 1 (II.24.2.5)
	a := m.at + arch.Addr(m.guids.off) + arch.Addr(i-1)*16
	if i == 0 || uint64(i)*16 > uint64(m.guids.size) {
		return "", &Error{"the index of the module version id", a, false}
	}
	b := m.mem.View(a, 16)
	if b == nil {
		return "", &Error{"the module version id", a, true}
	}
	le := binary.LittleEndian
	return fmt.Sprintf("%08X%04X%04X%X", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:16]), nil
}

// AssemblyName returns the simple name of the assembly, "" in a module that
// has no manifest.
func (m *Metadata) AssemblyName() (string, error) {
	if m.Rows(Assembly) == 0 {
		return "", nil
	}
	r, err := m.row(Assembly, 1)
	if err != nil {
		return "", err
	}
	return m.text(r.col(7))
}
