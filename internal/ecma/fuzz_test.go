package ecma

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

func FuzzMetadata(f *testing.F) {
	data, _ := fixture(f)
	f.Add(data, uint32(0x2c))
	f.Add(image(data, true), uint32(1))
	f.Add(image(data, false), uint32(0x3f))
	f.Add(pdbFixture(f), uint32(0xaa))
	f.Fuzz(func(t *testing.T, data []byte, rid uint32) {
		mem := memtest.Piece[arch.Addr]{At: 0x1000, Data: data}
		at, size := arch.Addr(0x1000), uint32(len(data))
		if a, n, err := Locate(mem, at); err == nil {
			at, size = a, n
		}
		m, err := Open(mem, at, size)
		if err != nil {
			return
		}
		m.MVID()
		m.Name()
		m.AssemblyName()
		m.GenericParamName(rid)
		m.MethodDebug(rid)
		if name, _ := m.Document(rid); len(name) > 3*maxDocument {
			t.Errorf("a document's name of %d bytes", len(name))
		}
		ReadPDBID(mem, at, size)
		m.UserString(Token(rid))
		m.Called(Token(rid))
		Place(mem, 0x1000, rid)
		d, _ := m.Method(rid)
		o, _ := m.Owner(rid)
		owner := Token(TypeDef)<<24 | Token(o)
		if name, _ := m.TypeName(owner); len(name) > maxNesting*2*(maxName+8) {
			t.Errorf("a name of %d bytes", len(name))
		}
		m.MethodSig(d.Signature, Scope{Type: owner, Method: Token(MethodDef)<<24 | Token(rid)})
	})
}

func FuzzSignature(f *testing.F) {
	data, _ := fixture(f)
	m := open(f, data)
	for i := range m.Rows(MethodDef) {
		if d, err := m.Method(i + 1); err == nil {
			f.Add(d.Signature)
		}
	}
	f.Fuzz(func(t *testing.T, sig []byte) {
		s, _ := m.MethodSig(sig, Scope{Type: 0x02000001, Method: 0x06000001})
		if len(s.Params) > maxNodes {
			t.Errorf("%d parameters of %d bytes", len(s.Params), len(sig))
		}
		for _, p := range s.Params {
			p.CSharp()
			_ = p.String()
		}
	})
}
