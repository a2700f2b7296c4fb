package arch

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// TestAMD64Steps walks the stack at every instruction of a program that was
// run step by step on Windows, and compares with the calls it really made.
func TestAMD64Steps(t *testing.T) {
	img := loadPE(t, AMD64, slurp(t, corpus(t, "steps-win-x64", "steps.exe")))
	trace := slurp(t, corpus(t, "steps-win-x64", "steps.txt.zst"))
	mem := &sparse{map[Addr]uint64{}, Span{0x700000, 0x900000}, []flat{img.flat}}

	// Of ___chkstk_ms of mingw no unwinder can know: it pushes, and its entry
	// in .pdata says that it does not.
	chkstk := func(pc Addr) bool { return false }
	for _, l := range strings.Split(string(slurp(t, corpus(t, "steps-win-x64", "symbols.txt"))), "\n") {
		if f := strings.Fields(l); len(f) == 3 && f[2] == "___chkstk_ms" {
			v, _ := strconv.ParseUint(f[0], 16, 64)
			chkstk = func(pc Addr) bool { return pc-Addr(v) < 0x32 }
		}
	}

	type call struct {
		parent int
		v      [10]uint64 // return address, its slot, registers
	}
	order := []Reg{amd64RBX, amd64RBP, amd64RSI, amd64RDI, amd64R12, amd64R13, amd64R14, amd64R15}
	calls := map[int]call{}
	states, frames, bad, skipped := 0, 0, 0, 0
	for s := bufio.NewScanner(bytes.NewReader(trace)); s.Scan(); {
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
			mem.words[Addr(hex(1))] = hex(2)
		case "C":
			c := call{parent: int(hex(2))}
			for i := range c.v {
				c.v[i] = hex(3 + i)
			}
			calls[int(hex(1))] = c
		case "S":
			var regs Regs
			regs.Set(amd64RIP, hex(1))
			regs.Set(amd64RSP, hex(2))
			for i, r := range order {
				regs.Set(r, hex(4+i))
			}
			if chkstk(Addr(hex(1))) {
				skipped++
				continue
			}
			states++
			pc := PC{Addr(hex(1)), true}
			for id := int(hex(3)); id != 0; id = calls[id].parent {
				c := calls[id]
				var rule Rule
				fn := img.find(uint32(pc.Lookup() - img.at))
				if fn == nil {
					rule = Rule{Base: amd64RSP, Offset: 8, RA: NoReg}
					rule.Save(amd64RIP, -8)
				} else if res := AMD64.PE.Rule(&PEQuery{mem, img.at, *fn, pc}, &rule); res.Status != PEOK {
					t.Fatalf("%s: %v", pc.Addr, res)
				}
				ok := apply(AMD64, mem, &rule, &regs)
				frames++
				rip, _ := regs.Get(amd64RIP)
				rsp, _ := regs.Get(amd64RSP)
				ok = ok && rip == c.v[0] && rsp == c.v[1]+8
				for i, r := range order {
					v, _ := regs.Get(r)
					ok = ok && v == c.v[2+i]
				}
				if !ok {
					if bad++; bad < 20 {
						t.Errorf("at %s (rip %s), rule %+v: rip %#x rsp %#x, want %#x", pc.Addr, f[1], rule, rip, rsp, c.v)
					}
					break
				}
				pc = PC{Addr(rip), false}
			}
		}
	}
	t.Logf("%d states, %d frames, %d wrong, %d passed over", states, frames, bad, skipped)
	if states < 23000 || bad > 0 {
		t.Errorf("%d of %d states are wrong", bad, states)
	}
}
