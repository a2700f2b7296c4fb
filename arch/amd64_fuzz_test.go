package arch

import (
	"encoding/binary"
	"testing"
)

// FuzzAMD64PERule feeds an unwind information and code that lie in one piece
// of memory. Whatever comes out, it comes out.
func FuzzAMD64PERule(f *testing.F) {
	le := binary.LittleEndian
	add := func(info, code string, pc uint16) {
		b := le.AppendUint32(nil, 0x200)
		b = le.AppendUint32(b, 0x240)
		b = le.AppendUint32(b, 0x10)
		b = append(b, make([]byte, 4)...)
		b = append(b, bytesOf(f, info)...)
		b = append(b, make([]byte, 0x200-len(b))...)
		f.Add(append(b, bytesOf(f, code)...), pc, true)
	}
	add("01 04 02 00 04 32 01 50", "55 48 83 ec 20 c3 48 83 c4 20 5d c3", 0x20a)
	add("01 08 05 25 08 03 03 52 07 34 10 00 01 50", "55 48 8d 6c 24 20 5d e9 00 10 00 00", 0x207)
	add("21 00 00 00 00 02 00 00 40 02 00 00 10 00 00 00", "c3", 0x200)
	add("01 00 01 00 00 1a", "c3", 0x200)
	add("02 01 04 00 02 16 00 06 01 50 00 00", "55 5d c3", 0x201)
	add("01 08 05 f5 08 0b 10 00 00 00 01 50 00 00", "55 48 8d ac 24 00 01 00 00 5d c3", 0x209)
	f.Fuzz(func(t *testing.T, b []byte, pc uint16, exact bool) {
		m := flatAt(0x10000, b)
		q := PEQuery{Mem: m, Base: m.At, Func: AMD64.PE.Function(b), PC: PC{m.At + Addr(pc), exact}}
		var r Rule
		res := AMD64.PE.Rule(&q, &r)
		if res.Status == PEOK && (r.N == 0 || r.N > MaxSaved || r.Saved[0] != Slot{-8, amd64RIP}) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzAMD64Leave(f *testing.F) {
	for _, s := range []string{"48 83 c4 20 5b c3", "ff 35 00 20 00 00 ff 25 00 20 00 00", "52 75 02 5a c3 5a ff 60 10", "c5 f8 77 48 8d 65 f8 5b 5d c3", "eb fe"} {
		f.Add(bytesOf(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := flatAt(0x10000, b)
		var r Rule
		if AMD64.Leave(m, m.At, &r) && (r.N == 0 || r.N > MaxSaved || r.RA != NoReg) {
			t.Errorf("%+v", r)
		}
		AMD64.AfterCall(m, m.At+Addr(len(b)))
	})
}

func FuzzAMD64EnterHook(f *testing.F) {
	f.Add(bytesOf(f, "55 41 57 41 56 48 83 ec 10 48 8d 6c 24 20 49 be 20 e9 8a 73 e1 7f 00 00 4c 8d 7d 10 ff 15 86 dd 82 7e"))
	f.Add(bytesOf(f, "41 57 41 56 c5 d8 57 e4 49 be 01 02 03 04 05 06 07 08 4c 8d 7c 24 20 e8 00 00 00 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := flatAt(0x10000, b)
		if id, ok := AMD64.EnterHook(m, m.At); ok && id == 0 {
			t.Error("an id of 0")
		}
	})
}
