package ecma

import "testing"

// TestInstance decodes signatures as the table of instance entry points has them:
// of a method of a generic class, of a generic method in one, with types of other
// modules, and of a generic method whose class is not told.
func TestInstance(t *testing.T) {
	data, _ := fixture(t)
	m := open(t, data)
	const method, call = 0x3f, 0xc6 // Generic`1.Method, Generic`1+Nested`1.Call
	owner := func(rid uint32) string {
		o, err := m.Owner(rid)
		if err != nil || o > 0x1f {
			t.Fatalf("the owner of %#x is %#x, %v", rid, o, err)
		}
		return string([]byte{byte(o << 2)}) // TypeDefOrRefEncoded
	}
	spell := func(ts []Type) (s string) {
		for _, t := range ts {
			s += t.CSharp() + ";"
		}
		return s
	}
	for _, test := range []struct{ sig, typeArgs, methodArgs string }{
		{"\x40\x15\x12" + owner(method) + "\x01\x3e\x3f", "System.__Canon;", ""},
		{"\x41\x15\x12" + owner(method) + "\x01\x08\x3f", "int;", ""},
		{"\x44\x15\x12" + owner(call) + "\x02\x1d\x05\x3d\x0a\x80\xc6\x02\x0e\x3f\x07\x11\x09", "byte[];long;", "string;?;"},
		{"\x04\x80\xc6\x01\x3f\x07\x15\x12\x09\x01\x08", "", "?<int>;"},
	} {
		sig := []byte(test.sig)
		in, err := m.Instance(append(sig, 0x77))
		if err != nil || spell(in.TypeArgs) != test.typeArgs || spell(in.MethodArgs) != test.methodArgs {
			t.Errorf("%x: %s %s, %v; want %s %s", test.sig, spell(in.TypeArgs), spell(in.MethodArgs), err, test.typeArgs, test.methodArgs)
		}
		row, size, ok := InstanceSize(append(sig, 0x77))
		if !ok || row != in.Row || size != len(sig) {
			t.Errorf("%x: row %#x, %d bytes, %v; want %#x, %d", test.sig, row, size, ok, in.Row, len(sig))
		}
		for n := range sig {
			if _, _, ok := InstanceSize(sig[:n]); ok {
				t.Errorf("%x is whole with %d bytes", test.sig, n)
			}
			if _, err := m.Instance(sig[:n]); err == nil {
				t.Errorf("%x is a signature", sig[:n])
			}
		}
	}
	for _, sig := range []string{
		"\x40\x15\x12" + owner(call) + "\x01\x3e\x3f",           // the method of another class
		"\x40\x3f\x07\x15\x12" + owner(method) + "\x01\x3e\x3f", // the class of another module
		"\x80\xc0\x01\x15\x12" + owner(method) + "\x01\x3e\x3f", // flags that are not known
		"\x40\x0e\x3f", // a method of string's, which is in another module
	} {
		if in, err := m.Instance([]byte(sig)); err == nil {
			t.Errorf("%x: %+v, want an error", sig, in)
		}
	}
}

func FuzzInstance(f *testing.F) {
	data, _ := fixture(f)
	m := open(f, data)
	f.Add([]byte("\x44\x15\x12\x18\x02\x1d\x05\x3d\x0a\x80\xc6\x02\x0e\x3f\x07\x11\x09"))
	f.Add([]byte("\x04\x80\xc6\x01\x3f\x07\x15\x12\x09\x01\x08"))
	f.Fuzz(func(t *testing.T, sig []byte) {
		row, size, ok := InstanceSize(sig)
		if size > len(sig) {
			t.Errorf("%d bytes of %d", size, len(sig))
		}
		if in, err := m.Instance(sig); err == nil && (!ok || in.Row != row) {
			t.Errorf("row %#x, without names %#x, %v", in.Row, row, ok)
		} else if len(in.TypeArgs)+len(in.MethodArgs) > maxNodes {
			t.Errorf("%d types", len(in.TypeArgs)+len(in.MethodArgs))
		}
	})
}
