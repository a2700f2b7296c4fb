package arch

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
)

// arm64Images returns the code of the images that the maps of a process name.
func arm64Images(t *testing.T, maps string) (code memtest.Pieces[Addr]) {
	files := map[string][]byte{}
	for _, l := range strings.Split(strings.TrimSpace(maps), "\n") {
		f := strings.Fields(l)
		if len(f) < 5 {
			continue
		}
		base := filepath.Base(f[4])
		if files[base] == nil {
			found, _ := filepath.Glob(filepath.Join(corpus.Path(t, "images", "elf"), "*", base+".zst"))
			for _, file := range found {
				if b := slurp(t, file); binary.LittleEndian.Uint16(b[18:]) == uint16(elf.EM_AARCH64) {
					files[base] = b
				}
			}
		}
		lo, hi, off := hexOf(t, f[0]), hexOf(t, f[1]), hexOf(t, f[3])
		if b := files[base]; off < uint64(len(b)) {
			code = append(code, flatAt(Addr(lo), b[off:min(off+hi-lo, uint64(len(b)))]))
		}
	}
	return code
}

func hexOf(t *testing.T, s string) (v uint64) {
	for _, c := range []byte(s) {
		v = v<<4 | uint64(strings.IndexByte("0123456789abcdef", c))
	}
	return v
}

// arm64State is one state: the registers, and the calls it is in, innermost last.
type arm64State struct {
	mem   memtest.Pieces[Addr] // the stack, and code
	regs  Regs
	calls []arm64Call
}

// An arm64Call is a call that was made: where it returns to, with which SP,
// and the registers when it was made.
type arm64Call struct {
	ra, sp uint64
	regs   Regs
}

// arm64EachStep calls do for the states of a stream. See README.md beside it.
func arm64EachStep(t *testing.T, name string, do func(*arm64State)) {
	maps, err := os.ReadFile(corpus.Path(t, "steps-arm64", name+".maps"))
	if err != nil {
		t.Fatal(err)
	}
	b := slurp(t, corpus.Path(t, "steps-arm64", name+".steps.zst"))
	le := binary.LittleEndian
	word := func() uint64 { v := le.Uint64(b); b = b[8:]; return v }
	b = b[8+8:]
	lo, hi := word(), word()
	ra, sp := word(), word()
	word()
	stack := make([]byte, hi-lo)
	copy(stack[hi-lo-18432:], b[:18432])
	b = b[18432:]
	s := arm64State{mem: slices.Insert(arm64Images(t, string(maps)), 0, flatAt(Addr(lo), stack)), calls: []arm64Call{{ra: ra, sp: sp}}}
	var before Regs
	for first := true; len(b) > 0; first = false {
		tag := b[0]
		b = b[1:]
		var push *arm64Call
		if tag&1 != 0 {
			push = &arm64Call{ra: word(), sp: word(), regs: before}
		}
		if tag&2 != 0 {
			n := int(le.Uint16(b))
			b = b[2:]
			s.calls = s.calls[:len(s.calls)-n]
		}
		if push != nil {
			s.calls = append(s.calls, *push)
		}
		s.regs = Regs{}
		for _, r := range []Reg{arm64PC, arm64SP, arm64FP, arm64LR, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28} {
			s.regs.Set(r, word())
		}
		if first {
			s.calls[0].regs = s.regs
		}
		n := int(le.Uint16(b))
		for b = b[2:]; n > 0; n-- {
			a := word()
			le.PutUint64(stack[a-lo:], word())
		}
		before = s.regs
		if tag&4 == 0 && len(s.calls) > 0 {
			do(&s)
		}
	}
}

// is reports whether regs are those of the caller once c has returned.
func (c *arm64Call) is(regs *Regs) bool {
	pc, _ := regs.Get(arm64PC)
	sp, _ := regs.Get(arm64SP)
	ok := pc == c.ra && sp == c.sp
	for r := arm64X19; r <= arm64FP; r++ {
		v, _ := regs.Get(r)
		w, _ := c.regs.Get(r)
		ok = ok && v == w
	}
	return ok
}

// TestARM64LeaveSteps checks that Leave, wherever it dares to answer, is right.
// It may be wrong in functions like vfprintf, for which it is not meant: they
// jump through registers that were loaded long before.
func TestARM64LeaveSteps(t *testing.T) {
	for _, name := range []string{"steps-O0", "steps-O2", "steps-O2-omitfp", "steps-O2-pac", "steps-O2-static", "steps-eh"} {
		states, told, bad := 0, 0, 0
		arm64EachStep(t, name, func(s *arm64State) {
			states++
			pc, _ := s.regs.Get(arm64PC)
			var r Rule
			if !ARM64.Leave(s.mem, Addr(pc), &r) {
				return
			}
			told++
			regs, c := s.regs, &s.calls[len(s.calls)-1]
			if !apply(ARM64, s.mem, &r, &regs) || !c.is(&regs) {
				if bad++; bad < 10 {
					t.Logf("%s: at %#x: %s leads to %x, want %#x %#x", name, pc, ruleText(ARM64, &r), regs, c.ra, c.sp)
				}
			}
		})
		if bad*1000 > told {
			t.Errorf("%s: %d of %d are wrong", name, bad, told)
		}
		t.Logf("%s: %d states, %d answers, %d wrong", name, states, told, bad)
	}
}
