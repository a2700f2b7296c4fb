package arch

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
)

// arm64Listed is what llvm-readobj says of one function: the rows of its
// prologue and epilogues as instructions, in the order that undoes them.
type arm64Listed struct {
	at       uint64
	length   int // bytes
	fragment bool
	prologue []string
	scopes   []arm64Scope
	odd      bool // with codes that llvm-readobj 14 does not know
}

type arm64Scope struct {
	start int // instruction; -1: the epilogue that ends the function
	rows  []string
}

// arm64Listing reads the output of llvm-readobj --unwind.
func arm64Listing(t *testing.T, text string) (fs []*arm64Listed) {
	var f *arm64Listed
	var into *[]string
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		key, val, _ := strings.Cut(l, ": ")
		switch {
		case key == "Function":
			f = &arm64Listed{at: hexOf(t, strings.ToLower(val[2:]))}
			fs = append(fs, f)
		case f == nil:
		case key == "FunctionLength":
			fmt.Sscan(val, &f.length)
		case key == "Fragment":
			f.fragment = val == "Yes"
		case key == "EpiloguePacked" && val == "Yes":
			f.scopes = append(f.scopes, arm64Scope{start: -1})
		case l == "Prologue [":
			into = &f.prologue
		case l == "Epilogue [":
			into = &f.scopes[0].rows
		case key == "StartOffset":
			f.scopes = append(f.scopes, arm64Scope{})
			fmt.Sscan(val, &f.scopes[len(f.scopes)-1].start)
		case l == "Opcodes [":
			into = &f.scopes[len(f.scopes)-1].rows
		case l == "]":
			into = nil
		case into != nil:
			if _, insn, ok := strings.Cut(l, "; "); ok {
				l = insn
			}
			f.odd = f.odd || l == "Bad opcode!" || strings.Contains(l, "trap frame") || strings.Contains(l, "context")
			*into = append(*into, l)
		}
	}
	for _, f := range fs {
		if len(f.scopes) == 1 && f.scopes[0].start < 0 && f.scopes[0].rows == nil {
			f.scopes[0].rows = f.prologue
		}
	}
	return fs
}

// arm64Undo says what rule the rows amount to. Restoring and saving look the
// same here: `ldp x19, x20, [sp], #16` is `stp x19, x20, [sp, #-16]!`.
func arm64Undo(rows []string) string {
	base, sp, next := "sp", 0, 0
	slots := map[string]int{}
	for _, row := range rows {
		f := strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(" ,[]#!", r) })
		n := 0
		fmt.Sscan(f[len(f)-1], &n)
		fp := -1
		switch op := f[0]; {
		case row == "save next" || row == "restore next":
			next++
		case op == "mov": // mov fp, sp; mov sp, fp
			fp = 0
		case op == "sub" && f[1] == "sp" && len(f) > 3 && f[2] == "fp", op == "add" && f[1] == "fp":
			fp = n
		case op == "sub" || op == "add":
			sp += n
		case op == "stp" || op == "ldp" || op == "str" || op == "ldr":
			at, pre := sp+n, strings.Contains(row, "!") || strings.Contains(row, "], #")
			if n < 0 {
				n = -n
			}
			if pre {
				at = sp
			}
			var regs []string
			for _, r := range f[1:] {
				if r == "sp" {
					break
				}
				regs = append(regs, r)
			}
			for ; next > 0 && len(regs) == 2; next-- {
				var x int
				fmt.Sscan(regs[len(regs)-1][1:], &x)
				kind := regs[len(regs)-1][:1]
				for i := 1; i <= 2; i++ {
					slots[fmt.Sprint(kind, x+i+2*(next-1))] = at + 8*(1+i+2*(next-1))
				}
			}
			next = 0
			for i, r := range regs {
				slots[r] = at + 8*i
			}
			if pre {
				sp += n
			}
		}
		if fp >= 0 {
			for r := range slots {
				slots[r] -= sp + fp
			}
			base, sp = "fp", -fp
		}
		if row == "end" {
			break
		}
	}
	s := fmt.Sprintf("cfa=%s%+d", base, sp)
	for _, names := range [][]string{{"x30", "lr"}} {
		ra := " ra=lr"
		for _, n := range names {
			if at, ok := slots[n]; ok {
				ra = fmt.Sprintf(" pc=[%d]", at-sp)
			}
		}
		s += ra
	}
	for i := 19; i <= 29; i++ {
		name := fmt.Sprint("x", i)
		at, ok := slots[name]
		if i == 29 {
			if !ok {
				at, ok = slots["fp"]
			}
			name = "fp"
		}
		if ok {
			s += fmt.Sprintf(" %s=[%d]", name, at-sp)
		}
	}
	for _, row := range rows {
		if strings.HasPrefix(row, "paci") || strings.HasPrefix(row, "auti") {
			s += " signed"
		}
	}
	return s
}

func arm64RuleAt(t *testing.T, m *testImage, fn PEFunction, rva uint32, exact bool) string {
	var r Rule
	res := ARM64.PE.Rule(&PEQuery{m, m.At, fn, PC{m.At + Addr(rva), exact}}, &r)
	if res.Status != PEOK {
		return fmt.Sprint(res)
	}
	return ruleText(ARM64, &r)
}

// TestARM64Listed compares with what llvm-readobj says of the codes, in
// bodies and at each instruction of prologues and epilogues.
func TestARM64Listed(t *testing.T) {
	for _, name := range []string{"O0", "O2", "Os", "scenarios.dll", "Microsoft.Diagnostics.Runtime.dll"} {
		exe, txt := fixture("arm64-"+name+".exe"), fixture("arm64-"+name+".txt.zst")
		if len(name) > 2 {
			exe, txt = corpus.Path(t, "arm64-pe-unwind", name), corpus.Path(t, "arm64-pe-unwind", name+".unwind.txt.zst")
		}
		m := loadPE(t, ARM64, slurp(t, exe))
		listed := arm64Listing(t, string(slurp(t, txt)))
		if len(listed) != len(m.funcs) {
			t.Fatalf("%s: %d functions, and %d in the listing", name, len(m.funcs), len(listed))
		}
		points, bad := 0, 0
		for i, f := range listed {
			fn := m.funcs[i]
			if uint64(m.At)+uint64(fn.Begin) != f.at {
				t.Fatalf("%s: function %d is at %#x, in the listing at %#x", name, i, fn.Begin, f.at)
			}
			check := func(off int, exact bool, rows []string, where string) {
				points++
				got, want := arm64RuleAt(t, m, fn, fn.Begin+4*uint32(off), exact), arm64Undo(rows)
				if got != want {
					if bad++; bad < 20 {
						t.Errorf("%s %#x+%d %s:\n got %s\nwant %s", name, f.at, 4*off, where, got, want)
					}
				}
			}
			n := 0
			for n < len(f.prologue) && !strings.HasPrefix(f.prologue[n], "end") {
				n++
			}
			if f.fragment {
				n = 0
			}
			for k := 0; k < n; k++ {
				check(k, true, f.prologue[n-k:], "in the prologue")
			}
			body := f.length/4 - 1
			check(body, false, f.prologue, "body")
			for _, s := range f.scopes {
				start, rows := s.start, s.rows
				size := 0
				for size < len(rows) && !strings.HasPrefix(rows[size], "end") {
					size++
				}
				if start < 0 {
					start = f.length/4 - size - 1
				}
				for k := 0; k <= size && start+k >= n; k++ {
					check(start+k, true, rows[k:], "in an epilogue")
				}
			}
		}
		t.Logf("%s: %d functions, %d places, %d wrong", name, len(listed), points, bad)
	}
}

// arm64Follow compares the rules of an image with what the instructions from
// there on do, wherever Leave can follow them.
func arm64Follow(t *testing.T, name string, m *testImage, every int) {
	told, bad := 0, 0
	for i := 0; i < len(m.funcs); i += every {
		fn := m.funcs[i]
		end := fn.End
		if end == 0 {
			end = fn.Begin + (uint32(m.Data[fn.Unwind])|uint32(m.Data[fn.Unwind+1])<<8|uint32(m.Data[fn.Unwind+2]&3)<<16)*4
		}
		for rva := fn.Begin; rva < end; rva += 4 {
			var r1, r2 Rule
			if !ARM64.Leave(m, m.At+Addr(rva), &r2) {
				continue
			}
			res := ARM64.PE.Rule(&PEQuery{m, m.At, fn, PC{m.At + Addr(rva), true}}, &r1)
			told++
			ok := res.Status == PEOK && r1.RA == r2.RA && (r1.Base != r2.Base || r1.Offset == r2.Offset)
			for _, s := range r2.Saved[:r2.N] {
				for _, x := range r1.Saved[:r1.N] {
					ok = ok && (s.Reg != x.Reg || s.Off == x.Off)
				}
			}
			if !ok {
				if bad++; bad < 10 {
					t.Logf("%s %#x in %#x-%#x: %v %s, but the code says %s", name, rva, fn.Begin, end, res, ruleText(ARM64, &r1), ruleText(ARM64, &r2))
				}
			}
		}
	}
	// Data between the instructions looks like some now and then.
	if bad*2000 > told {
		t.Errorf("%s: %d wrong", name, bad)
	}
	t.Logf("%s: %d instructions, %d wrong", name, told, bad)
}

func TestARM64Images(t *testing.T) {
	for _, name := range []string{"O0", "O2", "Os"} {
		arm64Follow(t, name, loadPE(t, ARM64, slurp(t, fixture("arm64-"+name+".exe"))), 1)
	}
	for _, name := range []string{"scenarios.dll", "Microsoft.Diagnostics.Runtime.dll"} {
		arm64Follow(t, name, loadPE(t, ARM64, slurp(t, corpus.Path(t, "arm64-pe-unwind", name))), 1)
	}
	every := 10
	if os.Getenv("SEAM_SLOW") != "" {
		every = 1
	}
	peImages(t, ARM64, func(name string, m *testImage) { arm64Follow(t, name, m, every) }, "System.Private.CoreLib.dll", "System.Linq.dll")
}

// TestARM64Packed spells out packed words: those that compilers emit, and the
// longest there can be.
func TestARM64Packed(t *testing.T) {
	word := func(flag, length, regF, regI, home, cr, frame uint32) uint32 {
		return flag | length/4<<2 | regF<<13 | regI<<16 | home<<20 | cr<<21 | frame/16<<23
	}
	for _, c := range []struct {
		w               uint32
		codes, epilogue string
	}{
		{word(1, 64, 0, 0, 0, 0, 16), "c001e4", "c001e4"},
		{word(1, 64, 0, 3, 0, 1, 32), "d642cc03e4", "d642cc03e4"},
		{word(1, 64, 0, 1, 0, 1, 32), "c001d600c001e4", "c001d600c001e4"}, // x19 and LR: SP moves first
		{word(1, 64, 0, 0, 0, 1, 16), "d561e4", "d561e4"},                 // str lr, [sp, #-16]!
		{word(1, 64, 0, 2, 0, 3, 32), "e181cc01e4", "81cc01e4"},
		{word(1, 64, 0, 2, 0, 2, 32), "e181cc01fce4", "81cc01fce4"},
		{word(1, 64, 1, 0, 0, 3, 48), "e183da01e4", "83da01e4"},
		{word(1, 64, 0, 2, 1, 3, 112), "e183e3e3e3e3cc09e4", "83cc09e4"},
		{word(1, 64, 0, 0, 1, 3, 96), "e18be4", "8be4"}, // the homes are among the locals
		{word(2, 64, 0, 2, 0, 3, 32), "e5e181cc01e4", ""},
		{word(1, 64, 7, 10, 1, 2, 8000), "e140c0e8c0ffe3e3e3e3d990d90ed88cd80aca08c986c904c882cc19fce4", "40c0e8c0ffd990d90ed88cd80aca08c986c904c882cc19fce4"},
	} {
		var made [arm64MaxPacked]byte
		i := arm64Unpack(c.w, &made)
		got, tail := i.codes, []byte(nil)
		if i.last >= 0 {
			got, tail = i.codes[:i.last], i.codes[i.last:]
		}
		if fmt.Sprintf("%x", got) != c.codes || fmt.Sprintf("%x", tail) != c.epilogue {
			t.Errorf("%#x: %x and %x, want %s and %s", c.w, got, tail, c.codes, c.epilogue)
		}
	}
	for w := uint32(0); w < 1<<19; w++ { // all but the sizes of function and frame
		var made [arm64MaxPacked]byte
		arm64Unpack(1|w&0xff<<13|w>>8&3<<21|w>>10<<23, &made)
	}
}
