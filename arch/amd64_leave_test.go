package arch

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// bytesOf turns hex digits and spaces into bytes.
func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ruleText writes a rule as `cfa=rsp+16 ra=[-8] rbx=[-16]`.
func ruleText(a *Arch, r *Rule) string {
	s := fmt.Sprintf("cfa=%s%+d", a.RegName(r.Base), r.Offset)
	if r.RA != NoReg {
		s += " ra=" + a.RegName(r.RA)
	}
	for _, x := range r.Saved[:r.N] {
		s += fmt.Sprintf(" %s=[%d]", a.RegName(x.Reg), x.Off)
	}
	if r.Signed {
		s += " signed"
	}
	if r.Signal {
		s += " signal"
	}
	return s
}

// TestAMD64Leave has a row for each kind of code that has no unwind
// information: `|` stands before the instruction at the pc.
func TestAMD64Leave(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"ret", "| c3", "cfa=rsp+8 rip=[-8]"},
		{"epilogue", "| 48 83 c4 20 | 5b | 41 5e | c3",
			"cfa=rsp+56 rip=[-8] rbx=[-24] r14=[-16]; cfa=rsp+24 rip=[-8] rbx=[-24] r14=[-16]; cfa=rsp+16 rip=[-8] r14=[-16]; cfa=rsp+8 rip=[-8]"},
		{"leave", "| c9 | c3", "cfa=rbp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"lea and vzeroupper", "| c5 f8 77 48 8d 65 f8 5b 5d c3", "cfa=rbp+16 rip=[-8] rbx=[-24] rbp=[-16]"},
		{"PLT, jump", "| ff 25 00 10 00 00", "cfa=rsp+8 rip=[-8]"},
		{"PLT, IBT", "| f3 0f 1e fa | f2 ff 25 00 10 00 00", "cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"PLT, lazy: entry 0 first, then entry 1", "| ff 35 00 20 00 00 | ff 25 00 20 00 00 0f 1f 40 00" +
			"| ff 25 00 20 00 00 | 68 00 00 00 00 | e9 e0 ff ff ff",
			"cfa=rsp+16 rip=[-8]; cfa=rsp+24 rip=[-8]; cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8]"},
		{"precode", "| 4c 8b 15 f9 3f 00 00 | ff 25 fb 3f 00 00", "cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"fix-up precode", "| ff 25 fa 3f 00 00 | 4c 8b 15 fb 3f 00 00 ff 25 fd 3f 00 00", "cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"call counting", "| 48 8b 05 f9 3f 00 00 66 ff 08 74 06 ff 25 f3 3f 00 00 ff 25 f5 3f 00 00", "cfa=rsp+8 rip=[-8]"},
		{"jump stub", "| 48 b8 00 11 22 33 44 7f 00 00 | ff e0", "cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"jump out of reach", "| e9 00 00 10 00", "cfa=rsp+8 rip=[-8]"},
		{"dispatch stub", "| 48 b8 00 11 22 33 44 7f 00 00 48 39 07 0f 85 00 10 00 00 ff 25 f5 3f 00 00", "cfa=rsp+8 rip=[-8]"},
		{"resolve stub", "| 52 | 4c 8b 15 00 10 00 00 48 8b 07 48 8d 14 02 4c 31 d2 48 23 15 00 10 00 00 49 8b 04 12 | 4c 3b 50 08 75 06 5a | ff 60 10 90 90 5a ff 25 00 10 00 00",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8]; cfa=rsp+16 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"write barrier", "| 48 89 37 | 48 c1 ef 0b 49 b8 00 00 00 20 00 7f 00 00 49 39 f0 77 0f 48 b8 00 00 00 00 01 7f 00 00 80 3c 07 ff 75 01 | c3 c6 04 07 ff c3",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]; cfa=rsp+8 rip=[-8]"},
		{"whole small function", "| 55 | 48 89 e5 | 53 31 db | 5b | 5d | c3",
			"cfa=rsp+8 rip=[-8]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+24 rip=[-8] rbx=[-24] rbp=[-16]; cfa=rsp+16 rip=[-8] rbp=[-16]; cfa=rsp+8 rip=[-8]"},
		{"calls", "| e8 00 00 00 00 c3", "no"},
		{"switch", "| 48 63 04 81 48 01 c8 | ff e0", "no; no"},
		{"keeps no register", "| 48 8b 1f 48 8b 6f 08 48 8b 67 10 ff e2", "no"},
		{"sigreturn", "| 48 c7 c0 0f 00 00 00 | 0f 05 c3", "no; no"},
		{"retpoline", "| 50 c3", "no"},
		{"for ever", "| eb fe", "no"},
		{"cut short", "| 48 83", "no"},
		{"unknown", "| 06", "no"},
	} {
		var code []byte
		var pcs []int
		for i, part := range strings.Split(c.code, "|") {
			if i > 0 {
				pcs = append(pcs, len(code))
			}
			code = append(code, bytesOf(t, part)...)
		}
		var got []string
		for _, at := range pcs {
			var r Rule
			if AMD64.Leave(flatAt(0x7f0000, code), 0x7f0000+Addr(at), &r) {
				got = append(got, ruleText(AMD64, &r))
			} else {
				got = append(got, "no")
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}

func TestAMD64AfterCall(t *testing.T) {
	for _, c := range []struct {
		code string
		want bool
	}{
		{"90 90 e8 00 00 00 00", true},
		{"90 90 90 90 90 ff d0", true},
		{"90 90 90 90 41 ff d7", true},
		{"90 90 90 90 ff 50 18", true},
		{"90 90 90 41 ff 54 24 08", true},
		{"90 ff 15 00 00 00 00", true},
		{"ff 94 24 00 00 00 00", true},
		{"ff 14 25 00 00 00 00", true},
		{"90 90 90 90 ff 14 c8", true},
		{"90 90 90 90 90 90 c3", false},
		{"90 90 90 90 90 ff e0", false}, // jmp rax
		{"90 90 90 90 90 ff 50", false}, // its displacement is missing
		{"90 90 90 e8 00 00 00", false},
		{"90 ff d0", true}, // too short to tell
	} {
		b := bytesOf(t, c.code)
		if got := AMD64.AfterCall(flatAt(0x1000, b), 0x1000+Addr(len(b))); got != c.want {
			t.Errorf("%s: %v", c.code, got)
		}
	}
}
