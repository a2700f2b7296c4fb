package arch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"golang.org/x/arch/x86/x86asm"
)

// peImages calls do for each PE file of the test material whose name is one of
// names and that is for the CPU a.
func peImages(t *testing.T, a *Arch, do func(name string, m *testImage), names ...string) {
	root := corpus.Path(t, "images", "pe")
	for _, name := range names {
		files, _ := filepath.Glob(filepath.Join(root, name, "*", name+"*"))
		for _, file := range files {
			b := slurp(t, file)
			nt := b[uint32(b[0x3c])|uint32(b[0x3d])<<8:]
			for _, m := range a.PETypes {
				if uint16(nt[4])|uint16(nt[5])<<8 == m {
					if img := loadPE(t, a, b); len(img.funcs) > 0 {
						do(filepath.Base(filepath.Dir(file))+"/"+name, img)
					}
				}
			}
		}
	}
}

// amd64Prologue says by how much the instructions from begin on have moved
// RSP, as far as it can follow them.
type amd64Prologue struct {
	depth, r11 int64
	lost       bool
}

func (p *amd64Prologue) run(in *x86asm.Inst) {
	dst, size, ok := amd64Operand(in.Args[0])
	src, _, _ := amd64Operand(in.Args[1])
	switch {
	case in.Op == x86asm.PUSH:
		p.depth += 8
	case !ok || size != 8:
	case in.Op == x86asm.LEA && dst == amd64R11:
		p.r11 = p.depth - int64(int32(in.Args[1].(x86asm.Mem).Disp))
	case dst != amd64RSP:
	case in.Op == x86asm.SUB:
		x, ok := in.Args[1].(x86asm.Imm)
		p.depth += int64(x)
		p.lost = p.lost || !ok
	case in.Op == x86asm.LEA:
		m := in.Args[1].(x86asm.Mem)
		p.depth -= int64(int32(m.Disp))
		p.lost = p.lost || m.Base != x86asm.RSP
	case in.Op == x86asm.MOV && src == amd64R11: // large frames: lea r11, [rsp-n]; call a probe
		p.depth = p.r11
	default:
		p.lost = true
	}
}

// amd64TailOf runs what lies between pc and a ret or a jump to elsewhere, if
// nothing there calls or branches, and returns by how much it moves RSP.
// fromFP says that it takes RSP from another register.
func amd64TailOf(m *testImage, rva, end uint32) (moved int64, fromFP, ok bool) {
	for rva < end {
		in, ok := amd64Decode(m.Data[rva:min(int(rva)+15, len(m.Data))])
		if !ok {
			return 0, false, false
		}
		dst, size, isReg := amd64Operand(in.Args[0])
		toSP := isReg && size == 8 && dst == amd64RSP
		switch {
		case in.Op == x86asm.RET:
			return moved, fromFP, true
		case in.Op == x86asm.POP:
			moved += 8
		case in.Op == x86asm.ADD && toSP:
			x, ok := in.Args[1].(x86asm.Imm)
			if moved += int64(x); !ok {
				return 0, false, false
			}
		case toSP && (in.Op == x86asm.LEA || in.Op == x86asm.MOV):
			fromFP = true
		case toSP, in.Op == x86asm.PUSH, in.Op == x86asm.CALL, in.Op == x86asm.JMP, in.Op == x86asm.LEAVE, in.Op == x86asm.INT:
			return 0, false, false
		default:
			if _, branch := in.Args[0].(x86asm.Rel); branch {
				return 0, false, false
			}
		}
		rva += uint32(in.Len)
	}
	return 0, false, false
}

// TestAMD64Images compares the rules for whole images, native and
// ReadyToRun, with what their instructions do: in prologues, and wherever a
// ret follows without a branch.
func TestAMD64Images(t *testing.T) {
	every := 25 // functions; all of them with SEAM_SLOW=1
	if os.Getenv("SEAM_SLOW") != "" {
		every = 1
	}
	peImages(t, AMD64, func(name string, m *testImage) {
		pcs, prologues, tails, bad := 0, 0, 0, 0
		for i := 0; i < len(m.funcs); i += every {
			fn := m.funcs[i]
			if fn.End <= fn.Begin {
				continue
			}
			var pro amd64Prologue
			head := m.Data[fn.Unwind&^1:]
			pro.lost = head[0]>>3&amd64ChainInfo != 0 || head[1] == 0
			if n := int(head[2]); n > 0 && m.Data[fn.Unwind+4+2*uint32(n-1)] == 0 {
				continue // what jumps here has pushed something, and the table counts it
			}
			for rva := fn.Begin; rva < fn.End; {
				in, ok := amd64Decode(m.Data[rva:min(int(rva)+15, len(m.Data))])
				if !ok {
					break
				}
				pcs++
				q := PEQuery{m, m.At, fn, PC{m.At + Addr(rva), true}}
				var r Rule
				if res := AMD64.PE.Rule(&q, &r); res.Status != PEOK {
					t.Fatalf("%s: %v at %s", name, res, q.PC.Addr)
				}
				want, isTail, fp := int64(0), false, false
				if !pro.lost && rva-fn.Begin <= uint32(head[1]) && r.Base == amd64RSP {
					prologues++
					want = pro.depth + 8
				} else if want, fp, isTail = amd64TailOf(m, rva, fn.End); isTail && !fp && r.Base == amd64RSP {
					tails++
					want += 8
				} else {
					want = int64(r.Offset)
				}
				if int64(r.Offset) != want && !r.Signal {
					if bad++; bad < 10 {
						t.Logf("%s at %s in %x-%x: %s, but the code says %+d", name, q.PC.Addr, fn.Begin, fn.End, ruleText(AMD64, &r), want)
					}
				}
				pro.run(&in)
				rva += uint32(in.Len)
			}
		}
		// Switch tables between the instructions decode to something, and a
		// few handwritten helpers push without saying so (OnHijackTripThread
		// the slot of its return address).
		if bad*1000 > prologues+tails {
			t.Errorf("%s: %d wrong", name, bad)
		}
		t.Logf("%s: %d instructions, %d in prologues, %d before ret, %d wrong", name, pcs, prologues, tails, bad)
	}, "coreclr.dll", "clrjit.dll", "hostpolicy.dll", "System.Private.CoreLib.dll", "recorder.dll")
}
