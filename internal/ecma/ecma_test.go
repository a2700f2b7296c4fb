package ecma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

// fixture reads testdata; its methods' names are what another reader says.
func fixture(t testing.TB) (metadata []byte, methods []string) {
	t.Helper()
	metadata, err := os.ReadFile("testdata/scenarios.metadata")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/scenarios.methods")
	if err != nil {
		t.Fatal(err)
	}
	return metadata, strings.Split(strings.TrimSpace(string(text)), "\n")
}

func open(t testing.TB, data []byte) *Metadata {
	t.Helper()
	m, err := Open(memtest.Piece[arch.Addr]{At: 0x10000, Data: data}, 0x10000, uint32(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMethodNames(t *testing.T) {
	data, want := fixture(t)
	testMethodNames(t, open(t, data), want)
	// The same without the word of sorted tables, as emitted metadata has it.
	m := open(t, data)
	m.sorted = 0
	testMethodNames(t, m, want)
}

func testMethodNames(t *testing.T, m *Metadata, want []string) {
	if n := m.Rows(MethodDef); int(n) != len(want) {
		t.Fatalf("%d methods, want %d", n, len(want))
	}
	for i, w := range want {
		rid := uint32(i) + 1
		d, err := m.Method(rid)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := m.Owner(rid)
		if err != nil {
			t.Fatal(err)
		}
		name, err := m.TypeName(Token(TypeDef)<<24 | Token(owner))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%06x\t%s.%s", rid, name, d.Name); got != w {
			t.Errorf("method %q, want %q", got, w)
		}
	}
}

func TestModule(t *testing.T) {
	data, _ := fixture(t)
	m := open(t, data)
	for _, c := range []struct {
		what string
		get  func() (string, error)
		want string
	}{
		{"MVID", m.MVID, "E4F5F030BDBF459582B5FCF12F10D5C0"},
		{"Name", m.Name, "scenarios.dll"},
		{"AssemblyName", m.AssemblyName, "scenarios"},
	} {
		if got, err := c.get(); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.what, got, err, c.want)
		}
	}
}

func TestParams(t *testing.T) {
	data, _ := fixture(t)
	m := open(t, data)
	for rid, want := range map[uint32]string{
		0x05: "int(string)",
		0x06: "int(byte*)",
		0x0b: "int(delegate*<int, int>, int, int)",
		0x11: "int(string[])",
		0x3a: "int(int, ref Program.<>c__DisplayClass9_1)",
		0x3f: "void(T, U)",
		0xc6: "void(T, V, W)",
	} {
		d, err := m.Method(rid)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := m.Owner(rid)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.MethodSig(d.Signature, Scope{Type: Token(TypeDef)<<24 | Token(owner), Method: Token(MethodDef)<<24 | Token(rid)})
		if err != nil {
			t.Fatal(err)
		}
		var ps []string
		for _, p := range s.Params {
			ps = append(ps, p.CSharp())
		}
		if got := s.Return.CSharp() + "(" + strings.Join(ps, ", ") + ")"; got != want {
			t.Errorf("%#x %s: %s, want %s", rid, d.Name, got, want)
		}
	}
}

func TestTypeSig(t *testing.T) {
	data, _ := fixture(t)
	m := open(t, data)
	handle := func(p arch.Addr) (Type, error) {
		if p != 0x1122 {
			return Type{}, fmt.Errorf("no type at %v", p)
		}
		return Type{Name: "Outer`1+Inner`2", Args: []Type{{Name: "System.Int32"}, {Name: "A.B"}, {Name: "System.Object"}}}, nil
	}
	for sig, want := range map[string][2]string{
		"\x08":                                         {"System.Int32", "int"},
		"\x1d\x14\x0e\x02\x00\x00":                     {"System.String[,][]", "string[][,]"},
		"\x14\x1d\x02\x03\x01\x04\x00":                 {"System.Boolean[][,,]", "bool[,,][]"},
		"\x14\x02\x01\x00\x00":                         {"System.Boolean[*]", "bool[]"},
		"\x10\x0f\x01":                                 {"System.Void*&", "ref void*"},
		"\x45\x10\x18":                                 {"System.IntPtr&", "ref nint"},
		"\x13\x01":                                     {"!1", "!1"},
		"\x1e\x81\x00":                                 {"!!256", "!!256"},
		"\x1b\x00\x02\x01\x08\x0e":                     {"System.Void(System.Int32, System.String)", "delegate*<int, string, void>"},
		"\x1b\x05\x02\x01\x08\x41\x0e":                 {"System.Void(System.Int32, System.String)", "delegate*<int, string, void>"},
		"\x21\x22\x11\x00\x00\x00\x00\x00\x00":         {"Outer`1+Inner`2[System.Int32,A.B,System.Object]", "Outer<int>.Inner<A.B, object>"},
		"\x22\x01\x33\x11\x00\x00\x00\x00\x00\x00\x0e": {"System.String", "string"},
	} {
		typ, err := m.typeSig([]byte(sig), Scope{Handle: handle})
		if got := [2]string{typ.String(), typ.CSharp()}; got != want || err != nil {
			t.Errorf("%x: %q, %v; want %q", sig, got, err, want)
		}
	}
	for _, sig := range []string{
		"", "\x0f", "\x14\x08", "\x99", "\x12", "\x12\x84", "\x12\xfc", "\x21\x22", "\x21\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x15\x08\xdf\xff\xff\xff\x08", // claims 500 million arguments
		strings.Repeat("\x1d", 1000),
		"\x1b\x00" + "\xdf\xff\xff\xff" + strings.Repeat("\x08", 5000),
	} {
		if typ, err := m.typeSig([]byte(sig), Scope{Handle: handle}); err == nil {
			t.Errorf("%.20x…: %v, want an error", sig, typ)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		want string
	}{
		{Type{Name: "System.Nullable`1", Args: []Type{{Name: "System.Double"}}}, "double?"},
		{Type{Name: "A`b", Args: []Type{{Name: "B"}}}, "A`b<B>"},
		{Type{Name: "A`1", Args: []Type{{Name: "B"}, {Name: "C"}}}, "A<B><C>"},
		{Type{Name: "A`9"}, "A"},
		{Type{Shape: Vector}, "?[]"},
	} {
		if got := c.typ.CSharp(); got != c.want {
			t.Errorf("%v: %q, want %q", c.typ, got, c.want)
		}
	}
}

// TestHoles takes the bytes away from each 64 on and asks for every name: all
// that comes is right or an error that names an address beyond the cut.
func TestHoles(t *testing.T) {
	data, want := fixture(t)
	const base = 0x10000
	for cut := 0; cut < len(data); cut += 64 {
		m, err := Open(memtest.Piece[arch.Addr]{At: base, Data: data[:cut]}, base, uint32(len(data)))
		if err != nil {
			check(t, err, base+arch.Addr(cut))
			continue
		}
		for i, w := range want {
			d, err := m.Method(uint32(i) + 1)
			if err != nil {
				check(t, err, base+arch.Addr(cut))
			} else if !strings.HasSuffix(w, "."+d.Name) {
				t.Fatalf("cut at %d: method %d is %q, want %q", cut, i+1, d.Name, w)
			}
			if o, err := m.Owner(uint32(i) + 1); err != nil {
				check(t, err, base+arch.Addr(cut))
			} else if name, err := m.TypeName(Token(TypeDef)<<24 | Token(o)); err != nil {
				check(t, err, base+arch.Addr(cut))
			} else if !strings.Contains(w, "\t"+name+".") {
				t.Fatalf("cut at %d: type of %d is %q, want %q", cut, i+1, name, w)
			}
		}
	}
}

// check fails the test unless err is about bytes that are not there: a read
// that reaches past cut may begin up to 32 bytes before it.
func check(t *testing.T, err error, cut arch.Addr) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !e.Missing || e.At+1024 < cut {
		t.Fatalf("cut at %v: %v", cut, err)
	}
}

// image wraps metadata in the least PE file that holds it, one section at file
// offset 0x400 and RVA 0x2000.
func image(metadata []byte, mapped bool) []byte {
	b := make([]byte, 0x2100+len(metadata))
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[60:], 0x80)
	pe := b[0x80:]
	copy(pe, "PE\x00\x00")
	le.PutUint16(pe[6:], 1)
	le.PutUint16(pe[20:], 240)
	le.PutUint16(pe[24:], 0x20b)
	le.PutUint32(pe[24+60:], 0x400)
	le.PutUint32(pe[24+108:], 16)
	le.PutUint32(pe[24+112+14*8:], 0x2008)
	le.PutUint32(pe[24+112+14*8+4:], cor20Size)
	s := pe[24+240:]
	le.PutUint32(s[12:], 0x2000)
	le.PutUint32(s[16:], uint32(0x100+len(metadata)))
	le.PutUint32(s[20:], 0x400)
	at := 0x400
	if mapped {
		at = 0x2000
	}
	le.PutUint32(b[at+8:], cor20Size)
	le.PutUint32(b[at+16:], 0x2100)
	le.PutUint32(b[at+20:], uint32(len(metadata)))
	copy(b[at+0x100:], metadata)
	return b
}

func TestLocate(t *testing.T) {
	data, _ := fixture(t)
	for _, mapped := range []bool{true, false} {
		mem := memtest.Piece[arch.Addr]{At: 0x7000_0000, Data: image(data, mapped)}
		at, size, err := Locate(mem, 0x7000_0000)
		want := arch.Addr(0x7000_0500)
		if mapped {
			want = 0x7000_2100
		}
		if at != want || int(size) != len(data) || err != nil {
			t.Errorf("mapped %v: %v, %d, %v; want %v, %d", mapped, at, size, err, want, len(data))
		}
	}
	for _, off := range []int{0, 60, 0x80, 0x98 + 112 + 14*8, 0x2008, 0x2100} {
		b := image(data, true)
		b[off] ^= 0x5a
		if at, _, err := Locate(memtest.Piece[arch.Addr]{At: 0, Data: b}, 0); err == nil {
			t.Errorf("byte %#x changed: metadata at %v, want an error", off, at)
		}
	}
	_, _, err := Locate(memtest.Piece[arch.Addr]{At: 0, Data: image(data, true)[:0x1000]}, 0)
	var e *Error
	if !errors.As(err, &e) || !e.Missing {
		t.Errorf("cut image: %v, want an error for missing bytes", err)
	}
}

func TestHostileHeader(t *testing.T) {
	data, _ := fixture(t)
	tables := 0
	for i := 0; i+12 < len(data); i++ {
		if string(data[i:i+3]) == "#~\x00" {
			tables = int(binary.LittleEndian.Uint32(data[i-8:]))
			break
		}
	}
	b := append([]byte(nil), data...)
	binary.LittleEndian.PutUint32(b[tables+24+8:], 0xffffffff) // rows of TypeDef
	_, err := Open(memtest.Piece[arch.Addr]{At: 0, Data: b}, 0, uint32(len(b)))
	if err == nil || !strings.Contains(err.Error(), "4294967295 rows") {
		t.Errorf("four billion rows: %v", err)
	}
}

// typeSig decodes the signature of a type (II.23.2.12, II.23.2.14).
func (m *Metadata) typeSig(sig []byte, scope Scope) (Type, error) {
	d := decoder{m: m, b: sig, scope: scope, nodes: maxNodes}
	t := d.typ(0)
	return t, d.err
}

// TestStreams reads the root of real metadata: it ends with the bytes that are
// there, and says what is missing.
func TestStreams(t *testing.T) {
	data, _ := fixture(t)
	all, err := Streams(memtest.Piece[arch.Addr]{At: 0x1000, Data: data}, 0x1000, uint32(len(data)))
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if want := "#~ #Strings #US #GUID #Blob"; strings.Join(names, " ") != want || err != nil {
		t.Errorf("%v, %v; want %s", names, err, want)
	}
	const list = 16 + 12 // behind a version of 12 bytes
	for _, cut := range []int{8, list, list + 6, list + 14, list + 18, list + 30} {
		some, err := Streams(memtest.Piece[arch.Addr]{At: 0x1000, Data: data[:cut]}, 0x1000, uint32(len(data)))
		var e *Error
		if !errors.As(err, &e) || !e.Missing || len(some) >= len(all) || !slices.Equal(some, all[:len(some)]) {
			t.Errorf("cut at %d: %v, %v", cut, some, err)
		}
	}
	wrong := slices.Clone(data)
	wrong[list+4+7] = 0x7f // the size of the first stream
	if some, err := Streams(memtest.Piece[arch.Addr]{At: 0x1000, Data: wrong}, 0x1000, uint32(len(data))); err == nil || len(some) != 0 {
		t.Errorf("a stream beyond the metadata: %v, %v", some, err)
	}
}
