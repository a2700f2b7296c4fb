package arch

import (
	"encoding/binary"
	"strings"
	"testing"
)

// TestARM64Leave has a row for each kind of code that has no unwind
// information, in words; `|` stands before the instruction at the pc.
func TestARM64Leave(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"ret", "| d65f03c0", "cfa=sp+0 ra=lr"},
		{"epilogue", "| a94153f3 | a8c27bfd | d65f03c0", // ldp x19, x20, [sp, #16]; ldp fp, lr, [sp], #32; ret
			"cfa=sp+32 pc=[-24] x19=[-16] x20=[-8] fp=[-32]; cfa=sp+32 pc=[-24] fp=[-32]; cfa=sp+0 ra=lr"},
		{"mov sp, fp", "| 910003bf a8c27bfd d65f03c0", "cfa=fp+32 pc=[-24] fp=[-32]"},
		{"autiasp", "| a8c17bfd | d50323bf | d65f03c0", "cfa=sp+16 pc=[-8] fp=[-16] signed; cfa=sp+0 ra=lr signed; cfa=sp+0 ra=lr"},
		{"retaa", "| a8c17bfd d65f0bff", "cfa=sp+16 pc=[-8] fp=[-16] signed"},
		{"paciasp", "| d503233f a9bf7bfd a8c17bfd d50323bf d65f03c0", "cfa=sp+0 ra=lr"},
		{"PLT", "| 90000090 f9400211 91000210 | d61f0220", "cfa=sp+0 ra=lr; cfa=sp+0 ra=lr"},
		{"PLT, BTI", "| d503245f 90000090 f9400211 91000210 d61f0220", "cfa=sp+0 ra=lr"},
		{"PLT, first entry", "| a9bf7bf0 | 90000090 | f947fe11 | 913fe210 | d61f0220",
			"cfa=sp+0 ra=lr; cfa=sp+16 ra=lr; cfa=sp+16 ra=lr; cfa=sp+16 ra=lr; cfa=sp+16 ra=lr"},
		{"precode", "| 1000006b f9400d6c f940096b d61f0160", "cfa=sp+0 ra=lr"},
		{"fix-up precode", "| 5801ffeb d61f0160", "cfa=sp+0 ra=lr"},
		{"write barrier", "| c89ffc0f 5801ffcc eb0c01ff 540000c3 d34bfdec 3940018d 7103fdbf 54000060 52801fed 3900018d d65f03c0", "cfa=sp+0 ra=lr"},
		{"whole small function", "| d10043ff | f9000bf3 aa0003f3 f9400bf3 | 910043ff d65f03c0", "cfa=sp+0 ra=lr; cfa=sp+16 ra=lr; cfa=sp+16 ra=lr"},
		{"calls", "| 94000000 d65f03c0", "no"},
		{"switch", "| b8a15801 10000080 8b010000 | d61f0000", "no; no"},
		{"keeps no register", "| a9405013 d65f03c0", "no"},
		{"longjmp", "| f9403402 9100005f d65f03c0", "no"},
		{"sigreturn", "| d2801168 | d4000001", "no; no"},
		{"for ever", "| 14000000", "no"},
		{"breakpoint", "| d4200000", "no"},
		{"undefined", "| 00000000", "no"},
	} {
		var code []byte
		var pcs []int
		for i, part := range strings.Split(c.code, "|") {
			if i > 0 {
				pcs = append(pcs, len(code))
			}
			for _, w := range strings.Fields(part) {
				code = binary.LittleEndian.AppendUint32(code, uint32(hexOf(t, w)))
			}
		}
		var got []string
		for _, at := range pcs {
			var r Rule
			if ARM64.Leave(flatAt(0x7f0000, code), 0x7f0000+Addr(at), &r) {
				got = append(got, ruleText(ARM64, &r))
			} else {
				got = append(got, "no")
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}

func TestARM64AfterCall(t *testing.T) {
	for w, want := range map[uint32]bool{
		0x94000010: true,  // bl
		0x97ffffff: true,  // bl
		0xd63f0100: true,  // blr x8
		0xd73f0908: true,  // blraa x8, x8
		0xd63f0d1f: true,  // blrabz x8
		0xd61f0100: false, // br x8
		0x14000010: false, // b
		0xd65f03c0: false, // ret
	} {
		if got := ARM64.AfterCall(flatAt(0x1000, binary.LittleEndian.AppendUint32(nil, w)), 0x1004); got != want {
			t.Errorf("%#x: %v", w, got)
		}
	}
	if !ARM64.AfterCall(flat{}, 0x1004) {
		t.Error("what is missing rules out nothing")
	}
}

// FuzzARM64PERule feeds an entry and an unwind information that lie in one
// piece of memory.
func FuzzARM64PERule(f *testing.F) {
	le := binary.LittleEndian
	add := func(unwind uint32, info string, pc uint16) {
		b := le.AppendUint32(nil, 0x200)
		b = le.AppendUint32(b, unwind)
		f.Add(append(b, bytesOf(f, info)...), pc, true)
	}
	add(8, "16000010 02000003 c177e3e3 81e4e4c1 00c07781 e4000000", 0x200)
	add(8, "24000020 12e0c010 99e4e4e4", 0x204)
	add(8, "10002010 e4 e6 ea e9", 0x200)
	add(8, "10000010 e7 60 81 e4", 0x220)
	add(1|16<<2|2<<16|3<<21|2<<23, "00", 0x204)
	add(2|16<<2|15<<16|7<<13|1<<20|511<<23, "00", 0x204)
	add(3, "00", 0x204)
	f.Fuzz(func(t *testing.T, b []byte, pc uint16, exact bool) {
		m := flatAt(0x10000, b)
		q := PEQuery{Mem: m, Base: m.At, Func: ARM64.PE.Function(b), PC: PC{m.At + Addr(pc), exact}}
		var r Rule
		res := ARM64.PE.Rule(&q, &r)
		if res.Status == PEOK && (r.N > MaxSaved || r.RA != NoReg && r.RA != arm64LR || r.RA == NoReg && r.Saved[0].Reg != arm64PC) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzARM64Leave(f *testing.F) {
	for _, s := range []string{"f353 41a9 fd7b c2a8 c003 5fd6", "f07b bfa9 1000 0090 1102 40f9 2002 1fd6", "0000 0014", "ff43 00d1 ff43 0091 c003 5fd6"} {
		f.Add(bytesOf(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := flatAt(0x10000, b)
		var r Rule
		if ARM64.Leave(m, m.At, &r) && r.N > MaxSaved {
			t.Errorf("%+v", r)
		}
		ARM64.AfterCall(m, m.At+Addr(len(b)))
	})
}
