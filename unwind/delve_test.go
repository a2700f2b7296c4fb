package unwind

import (
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"github.com/seamwalk/seam/arch"
)

// A second opinion on the middle of every function, by delve's machine. It
// never fills the CIE's rules in for DW_CFA_restore, so that a register it
// calls undefined may have one.
func TestRowsAsDelve(t *testing.T) {
	for _, path := range append([]string{libc(t)}, extraImages()...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := openELF(t, path)
			// The program headers, by which a process's image is read, do not say
			// where .eh_frame ends, and delve reads to the end.
			file, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			eh := file.Section(".eh_frame")
			if eh == nil {
				t.Skip("no .eh_frame")
			}
			data, err := eh.Data()
			if err != nil {
				t.Fatal(err)
			}
			fdes, err := frame.Parse(data, binary.LittleEndian, 0, 8, eh.Addr)
			if err != nil {
				t.Fatal(err)
			}
			src := m.sources()[0].(*ehFrame)
			var sc scratch
			rows, bad := 0, 0
			for _, f := range fdes {
				if f.End() <= f.Begin() {
					continue
				}
				pc := arch.PC{Addr: arch.Addr(f.Begin() + (f.End()-f.Begin())/2), Exact: true}
				ctx, err := f.EstablishFrame(uint64(pc.Addr))
				if err != nil {
					continue
				}
				var d fde
				ok, flt := src.row(src, pc, &d, &sc)
				if !ok || flt.reason != 0 {
					t.Fatalf("%v: %v %+v", pc, ok, flt)
				}
				if d.code.Lo != arch.Addr(f.Begin()) {
					continue // one function described twice
				}
				rows++
				w := &sc.row
				switch ctx.CFA.Rule {
				case frame.RuleCFA:
					if w.cfa.how != atOffset || w.base != ctx.CFA.Reg || w.cfa.off != ctx.CFA.Offset {
						bad++
						t.Errorf("%v: CFA %s, delve has %+v", pc, rowText(w), ctx.CFA)
					}
				case frame.RuleExpression:
					if w.cfa.how != atExpression || string(d.expression(w.cfa)) != string(ctx.CFA.Expression) {
						bad++
						t.Errorf("%v: CFA %s, delve has %+v", pc, rowText(w), ctx.CFA)
					}
				}
				for r, x := range ctx.Regs {
					if r >= uint64(len(m.arch.Names)) || x.Rule == frame.RuleUndefined {
						continue
					}
					c := w.regs[r]
					if x.Rule == frame.RuleOffset && (c.how != atOffset || c.off != x.Offset) {
						bad++
						t.Errorf("%v: %s, delve has r%d %+v", pc, rowText(w), r, x)
					}
				}
				if bad > 20 {
					t.FailNow()
				}
			}
			t.Logf("%d functions, %d differ", rows, bad)
		})
	}
}
