package ecma

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// Place returns where the byte at rva of the PE file lies whose first byte is at
// base, in the way that the file is laid out there: see Locate.
func Place(r objfile.Reader, base arch.Addr, rva uint32) (arch.Addr, error) {
	at, _, err := Locate(r, base)
	if err != nil {
		return 0, err
	}
	h, missing, err := objfile.ReadPE(r, base)
	if err != nil || missing != 0 {
		return 0, &Error{"the PE header of an image", base, err == nil}
	}
	d, _ := h.Dir(objfile.PECLR)
	cor := r.View(base+arch.Addr(d.RVA), 16)
	if cor != nil && binary.LittleEndian.Uint32(cor) == cor20Size {
		if meta, _ := cor20Metadata(cor); at == base+arch.Addr(meta) {
			return base + arch.Addr(rva), nil
		}
	}
	off, _, ok := h.FileOff(rva)
	if !ok {
		return 0, &Error{"an address in an image", base + arch.Addr(rva), false}
	}
	return base + arch.Addr(off), nil
}

// maxIL bounds the IL of a method, in bytes.
const maxIL = 1 << 20

// Body returns the IL of the method whose header lies at at (II.25.4).
func Body(r objfile.Reader, at arch.Addr) ([]byte, error) {
	b := r.View(at, 1)
	if b == nil {
		return nil, &Error{"the header of a method's IL", at, true}
	}
	const tiny, fat = 2, 3
	begin, size := at+1, uint32(b[0]>>2)
	switch b[0] & 3 {
	case tiny:
	case fat:
		if b = r.View(at, 12); b == nil {
			return nil, &Error{"the header of a method's IL", at, true}
		}
		begin, size = at+4*arch.Addr(b[1]>>4), binary.LittleEndian.Uint32(b[4:])
		if b[1]>>4 < 3 || size > maxIL {
			return nil, &Error{"the header of a method's IL", at, false}
		}
	default:
		return nil, &Error{"the header of a method's IL", at, false}
	}
	il := r.View(begin, int(size))
	if il == nil && size > 0 {
		return nil, &Error{"a method's IL", begin, true}
	}
	return il, nil
}

// Opcodes of IL (III.3, III.4), the exported ones for its readers.
const (
	opJmp      = 0x27
	OpCall     = 0x28
	opCalli    = 0x29
	opCallvirt = 0x6f
	OpLdstr    = 0x72
	opNewobj   = 0x73
)

// An Instruction is an instruction of IL.
type Instruction struct {
	At, Next uint32 // where it and the next one begin, in bytes
	Op       uint16 // 0xfe00 and more: of two bytes
	Operand  []byte
}

// Token returns the operand of an instruction that has a token.
func (i *Instruction) Token() Token {
	if len(i.Operand) != 4 {
		return 0
	}
	return Token(binary.LittleEndian.Uint32(i.Operand))
}

// Calls reports whether i calls a method.
func (i *Instruction) Calls() bool {
	return i.Op >= opJmp && i.Op <= opCalli || i.Op == opCallvirt || i.Op == opNewobj
}

// Loads reports whether i puts a local variable, an argument or null on the stack and
// does nothing else.
func (i *Instruction) Loads() bool {
	const ldarg0, ldloc3, ldargS, ldlocS, ldnull, ldarg, ldloc = 0x02, 0x09, 0x0e, 0x11, 0x14, 0xfe09, 0xfe0c
	switch i.Op {
	case ldargS, ldlocS, ldnull, ldarg, ldloc:
		return true
	}
	return i.Op >= ldarg0 && i.Op <= ldloc3
}

// Jumps returns where a branch may lead to.
func (i *Instruction) Jumps() (to []uint32) {
	long := i.Operand
	switch {
	case i.Op >= 0x2b && i.Op <= 0x37 || i.Op == 0xde: // br.s to blt.un.s, leave.s
		return []uint32{i.Next + uint32(int8(i.Operand[0]))}
	case i.Op >= 0x38 && i.Op <= 0x44 || i.Op == 0xdd: // br to blt.un, leave
	case i.Op == opSwitch:
		long = long[4:]
	default:
		return nil
	}
	for ; len(long) >= 4; long = long[4:] {
		to = append(to, i.Next+binary.LittleEndian.Uint32(long))
	}
	return to
}

// operands are the instructions of one byte that have an operand, and how many bytes
// that has (III.3, III.4).
var operands = func() (size [256]uint8) {
	set := func(n uint8, from, to int) {
		for op := from; op <= to; op++ {
			size[op] = n
		}
	}
	set(1, 0x0e, 0x13) // ldarg.s to stloc.s
	set(1, 0x1f, 0x1f)
	set(4, 0x20, 0x20)
	set(8, 0x21, 0x21)
	set(4, 0x22, 0x22)
	set(8, 0x23, 0x23)
	set(4, 0x27, 0x29) // jmp, call, calli
	set(1, 0x2b, 0x37) // branches
	set(4, 0x38, 0x45) // and switch, whose table follows
	set(4, 0x6f, 0x75)
	set(4, 0x79, 0x79)
	set(4, 0x7b, 0x81)
	set(4, 0x8c, 0x8d)
	set(4, 0x8f, 0x8f)
	set(4, 0xa3, 0xa5)
	set(4, 0xc2, 0xc2)
	set(4, 0xc6, 0xc6)
	set(4, 0xd0, 0xd0)
	set(4, 0xdd, 0xdd)
	set(1, 0xde, 0xde)
	return size
}()

// longOperands is operands for instructions of two bytes, 0xfe first.
var longOperands = map[byte]uint8{0x06: 4, 0x07: 4, 0x09: 2, 0x0a: 2, 0x0b: 2, 0x0c: 2, 0x0d: 2, 0x0e: 2, 0x12: 1, 0x15: 4, 0x16: 4, 0x19: 1, 0x1c: 4}

// opSwitch is the one instruction whose operand has no fixed size.
const opSwitch = 0x45

// Instructions returns the instructions of il, as many as are whole.
func Instructions(il []byte) (list []Instruction) {
	for at := 0; at < len(il); {
		op, next, size := uint16(il[at]), at+1, int(operands[il[at]])
		if op == 0xfe && next < len(il) {
			op, size = 0xfe00|uint16(il[next]), int(longOperands[il[next]])
			next++
		}
		if op == opSwitch && len(il)-next >= 4 {
			size += 4 * int(min(binary.LittleEndian.Uint32(il[next:]), maxIL))
		}
		if size > len(il)-next {
			break
		}
		list = append(list, Instruction{At: uint32(at), Next: uint32(next + size), Op: op, Operand: il[next : next+size]})
		at = next + size
	}
	return list
}

// UserString returns the text that ldstr loads (II.24.2.4): t is its operand.
func (m *Metadata) UserString(t Token) (string, error) {
	a := m.at + arch.Addr(m.users.off) + arch.Addr(t.Row())
	if t.Table() != userString || t.Row() == 0 {
		return "", &Error{"the token of a text", a, false}
	}
	b, err := m.blobIn(m.users, t.Row())
	if err != nil {
		return "", err
	}
	return bin.UTF16(b), nil // a byte about its letters follows them
}

// userString is the table that a token of #US names; it is none (III.4.16).
const userString Table = 0x70

// A Callee is the method that a call names.
type Callee struct {
	Class  string // "System.Environment"; "" if it is no plain class, as a generic instance
	Name   string
	Params int // how many it has, this not among them
}

// Called reads what a token of a call names.
func (m *Metadata) Called(t Token) (c Callee, err error) {
	var sig []byte
	class := Token(0)
	switch t.Table() {
	case MethodDef:
		d, err := m.Method(t.Row())
		if err != nil {
			return c, err
		}
		owner, err := m.Owner(t.Row())
		if err != nil {
			return c, err
		}
		c.Name, sig, class = d.Name, d.Signature, Token(TypeDef)<<24|Token(owner)
	case memberRef:
		r, err := m.row(memberRef, t.Row())
		if err != nil {
			return c, err
		}
		if c.Name, err = m.text(r.col(1)); err != nil {
			return c, err
		}
		if sig, err = m.blob(r.col(2)); err != nil {
			return c, err
		}
		if tab, rid := decode(memberRefParent, r.col(0)); tab == TypeRef || tab == TypeDef {
			class = Token(tab)<<24 | Token(rid)
		}
	default:
		return c, &Error{"the token of a call", m.at, false}
	}
	const generic = 0x10 // a number of generic parameters follows (II.23.2.1)
	if len(sig) < 2 || sig[0]&generic != 0 {
		return c, &Error{"the signature of a call", m.at, false}
	}
	n, _ := Compressed(sig[1:])
	if c.Params = int(n); class != 0 {
		c.Class, err = m.TypeName(class)
	}
	return c, err
}

const memberRef Table = 0x0a
