package arch

import (
	"fmt"
	"strings"
	"testing"
)

// amd64Listed is what llvm-readobj says of one entry.
type amd64Listed struct {
	begin, unwind, parent uint64 // parent: the unwind information it is chained to
	frame                 string // register
	codes                 []string
}

// amd64Listing reads the output of llvm-readobj --unwind.
func amd64Listing(t *testing.T, text string) (fs []*amd64Listed) {
	var f *amd64Listed
	chained := false
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		key, val, _ := strings.Cut(l, ": ")
		addr := func() uint64 {
			_, a, _ := strings.Cut(val, "(0x")
			return hexOf(t, strings.ToLower(strings.TrimSuffix(a, ")")))
		}
		switch {
		case l == "RuntimeFunction {":
			f, chained = &amd64Listed{}, false
			fs = append(fs, f)
		case l == "Chained {":
			chained = true
		case key == "StartAddress" && !chained:
			f.begin = addr()
		case key == "UnwindInfoAddress" && chained:
			f.parent = addr()
		case key == "UnwindInfoAddress":
			f.unwind = addr()
		case key == "FrameRegister":
			f.frame = strings.ToLower(val)
		case f != nil && strings.HasPrefix(key, "0x") && val != "":
			f.codes = append(f.codes, val)
		}
	}
	return fs
}

// rule says what rule the codes of f and its parents amount to in the body, or
// "" where the listing does not hold them all.
func (f *amd64Listed) rule(byUnwind map[uint64]*amd64Listed) string {
	base, sp := "rsp", 0
	slots := map[string]int{}
	fixed := map[string]int{}
	for own := f; f != nil; f = byUnwind[f.parent] {
		for _, code := range f.codes {
			var reg string
			var n int
			for _, x := range strings.FieldsFunc(code, func(r rune) bool { return r == ' ' || r == ',' }) {
				if v, ok := strings.CutPrefix(x, "reg="); ok {
					reg = strings.ToLower(v)
				} else if v, ok := strings.CutPrefix(x, "size="); ok {
					fmt.Sscan(v, &n)
				} else if v, ok := strings.CutPrefix(x, "offset="); ok {
					fmt.Sscan(v, &n)
				}
			}
			switch op, _, _ := strings.Cut(code, " "); op {
			case "PUSH_NONVOL":
				slots[reg] = sp
				sp += 8
			case "ALLOC_SMALL", "ALLOC_LARGE":
				sp += n
			case "SAVE_NONVOL", "SAVE_NONVOL_FAR":
				if own.frame != "-" && base == "rsp" {
					fixed[reg] = n
				} else {
					slots[reg] = n
				}
			case "SET_FPREG":
				for r := range slots {
					slots[r] -= n + sp
				}
				for r, at := range fixed {
					slots[r] = at - n
				}
				base, sp = reg, -n
			case "PUSH_MACHFRAME":
				return ""
			}
		}
		if f.parent == 0 {
			break
		}
		if byUnwind[f.parent] == nil {
			return ""
		}
	}
	s := fmt.Sprintf("cfa=%s%+d rip=[-8]", base, sp+8)
	for r := amd64RAX; r < amd64RIP; r++ {
		if at, ok := slots[AMD64.RegName(r)]; ok && amd64Keep.Has(r) {
			s += fmt.Sprintf(" %s=[%d]", AMD64.RegName(r), at-sp-8)
		}
	}
	return s
}

// TestAMD64Listed compares the rules of bodies with what llvm-readobj says.
func TestAMD64Listed(t *testing.T) {
	m := loadPE(t, AMD64, slurp(t, fixture("steps-win-x64.exe.zst")))
	fs := amd64Listing(t, string(slurp(t, fixture("steps-win-x64.unwind.txt.zst"))))
	byUnwind := map[uint64]*amd64Listed{}
	for _, f := range fs {
		byUnwind[f.unwind] = f
	}
	compared := 0
	for _, f := range fs {
		want := f.rule(byUnwind)
		fn := m.find(uint32(f.begin - uint64(m.At)))
		if want == "" || fn == nil {
			continue
		}
		compared++
		var r Rule
		res := AMD64.PE.Rule(&PEQuery{m, m.At, *fn, PC{m.At + Addr(fn.End), false}}, &r)
		if got := ruleText(AMD64, &r); got != want || res.Status != PEOK {
			t.Errorf("%#x: %v\n got %s\nwant %s", f.begin, res, got, want)
		}
	}
	t.Logf("%d of %d entries", compared, len(fs))
	if compared < 150 {
		t.Error("too few")
	}
}
