package arch

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
)

// amd64Steps is one state of the program that was run step by step on Windows.
type amd64State struct {
	img   *testImage
	mem   *memtest.Sparse[Addr]
	regs  Regs
	calls []amd64Call // innermost first: the calls it really made
	odd   bool        // in mingw's ___chkstk_ms, which pushes although its entry in .pdata says that it does not
}

type amd64Call struct{ v [10]uint64 } // return address, its slot, registers in amd64StepRegs' order

var amd64StepRegs = []Reg{amd64RBX, amd64RBP, amd64RSI, amd64RDI, amd64R12, amd64R13, amd64R14, amd64R15}

// is reports whether regs are what they were when c was called, after its return.
func (c *amd64Call) is(regs *Regs) bool {
	rip, _ := regs.Get(amd64RIP)
	rsp, _ := regs.Get(amd64RSP)
	ok := rip == c.v[0] && rsp == c.v[1]+8
	for i, r := range amd64StepRegs {
		v, _ := regs.Get(r)
		ok = ok && v == c.v[2+i]
	}
	return ok
}

// amd64EachStep calls do for the states of a trace. See testdata/README.md.
func amd64EachStep(t *testing.T, exe, trace string, do func(*amd64State)) {
	img := loadPE(t, AMD64, slurp(t, exe))
	mem := &memtest.Sparse[Addr]{Words: map[Addr]uint64{}, Lo: 0x700000, Hi: 0x900000, Images: img.flat}

	chkstk := Span{0x1400057c0, 0x1400057f2}

	parent := map[int]int{}
	calls := map[int]amd64Call{}
	for s := bufio.NewScanner(bytes.NewReader(slurp(t, trace))); s.Scan(); {
		f := strings.Fields(s.Text())
		hex := func(i int) uint64 {
			v, err := strconv.ParseUint(f[i], 16, 64)
			if err != nil {
				t.Fatalf("%q: %v", s.Text(), err)
			}
			return v
		}
		switch f[0] {
		case "W":
			mem.Words[Addr(hex(1))] = hex(2)
		case "C":
			id := int(hex(1))
			parent[id] = int(hex(2))
			var c amd64Call
			for i := range c.v {
				c.v[i] = hex(3 + i)
			}
			calls[id] = c
		case "S":
			st := amd64State{img: img, mem: mem, odd: chkstk.Has(Addr(hex(1)))}
			st.regs.Set(amd64RIP, hex(1))
			st.regs.Set(amd64RSP, hex(2))
			for i, r := range amd64StepRegs {
				st.regs.Set(r, hex(4+i))
			}
			for id := int(hex(3)); id != 0; id = parent[id] {
				st.calls = append(st.calls, calls[id])
			}
			do(&st)
		}
	}
}

func TestAMD64Steps(t *testing.T) {
	for _, s := range amd64Traces {
		t.Run(s.name, func(t *testing.T) { amd64WalkSteps(t, s.exe(t), s.trace(t)) })
		t.Run(s.name+"/leave", func(t *testing.T) { amd64LeaveSteps(t, s.exe(t), s.trace(t)) })
	}
}

// amd64Traces are the recorded programs: a part that is kept here, and all of it.
var amd64Traces = []struct {
	name       string
	exe, trace func(*testing.T) string
}{
	{"part",
		func(*testing.T) string { return fixture("steps-win-x64.exe.zst") },
		func(*testing.T) string { return fixture("steps-win-x64.txt.zst") }},
	{"whole",
		func(t *testing.T) string { return corpus.Path(t, "steps-win-x64", "steps.exe") },
		func(t *testing.T) string { return corpus.Path(t, "steps-win-x64", "steps.txt.zst") }},
}

// amd64WalkSteps walks the stack at every instruction and compares with the
// calls that were made.
func amd64WalkSteps(t *testing.T, exe, trace string) {
	states, frames, bad := 0, 0, 0
	amd64EachStep(t, exe, trace, func(s *amd64State) {
		if s.odd {
			return
		}
		states++
		regs, exact := s.regs, true
		for _, c := range s.calls {
			rip, _ := regs.Get(amd64RIP)
			pc := PC{Addr(rip), exact}
			var rule Rule
			fn := s.img.find(uint32(pc.Lookup() - s.img.At))
			if fn == nil {
				rule = Rule{Base: amd64RSP, Offset: 8, RA: NoReg}
				rule.Save(amd64RIP, -8)
			} else if res := AMD64.PE.Rule(&PEQuery{s.mem, s.img.At, *fn, pc}, &rule); res.Status != PEOK {
				t.Fatalf("%s: %v", pc.Addr, res)
			}
			frames++
			if !apply(AMD64, s.mem, &rule, &regs) || !c.is(&regs) {
				if bad++; bad < 20 {
					t.Errorf("at %s: rule %+v leads to %v, want %#x", pc.Addr, rule, regs, c.v)
				}
				break
			}
			exact = false
		}
	})
	t.Logf("%d states, %d frames, %d wrong", states, frames, bad)
	if states < 5000 {
		t.Errorf("only %d states", states)
	}
}

// amd64LeaveSteps checks that Leave, wherever it dares to answer, is right.
func amd64LeaveSteps(t *testing.T, exe, trace string) {
	states, told, bad := 0, 0, 0
	amd64EachStep(t, exe, trace, func(s *amd64State) {
		if len(s.calls) == 0 {
			return
		}
		states++
		var rule Rule
		regs := s.regs
		rip, _ := regs.Get(amd64RIP)
		if !AMD64.Leave(s.mem, Addr(rip), &rule) {
			return
		}
		told++
		if !apply(AMD64, s.mem, &rule, &regs) || !s.calls[0].is(&regs) {
			if bad++; bad < 20 {
				t.Errorf("at %#x: rule %+v leads to %v, want %#x", rip, rule, regs, s.calls[0].v)
			}
		}
	})
	t.Logf("%d states, %d answers, %d wrong", states, told, bad)
}
