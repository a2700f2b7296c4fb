package unwind

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// rowText writes a row on one line, registers by number.
func rowText(w *row) string {
	var b strings.Builder
	switch w.cfa.how {
	case atOffset:
		fmt.Fprintf(&b, "cfa=r%d%+d", w.base, w.cfa.off)
	case atExpression:
		b.WriteString("cfa=exp")
	}
	for i, x := range w.regs {
		switch x.how {
		case undefined:
			fmt.Fprintf(&b, " r%d=u", i)
		case sameValue:
			fmt.Fprintf(&b, " r%d=s", i)
		case atOffset:
			fmt.Fprintf(&b, " r%d=c%+d", i, x.off)
		case valOffset:
			fmt.Fprintf(&b, " r%d=v%+d", i, x.off)
		case inRegister:
			fmt.Fprintf(&b, " r%d=r%d", i, x.off)
		case atExpression:
			fmt.Fprintf(&b, " r%d=exp", i)
		case valExpression:
			fmt.Fprintf(&b, " r%d=vexp", i)
		}
	}
	if w.signed {
		b.WriteString(" signed")
	}
	return b.String()
}

// rowOf returns the row of the first FDE in m for pc.
func rowOf(m *synth, pc arch.PC) (string, fault) {
	u := m.unwinder(nil)
	u.open(&u.images[0])
	var sc scratch
	for _, s := range u.images[0].sources {
		var d fde
		var ok bool
		var f fault
		switch s := s.Source.(type) {
		case *ehFrame:
			ok, f = s.row(s, pc, &d, &sc)
		case *debugFrame:
			ok, f = s.row(s, pc, &d, &sc)
		}
		if ok || f.reason != 0 {
			return rowText(&sc.row), f
		}
	}
	return "none", fault{}
}

// Each row has instructions and the row that they must give at byte 8 of the
// function, on top of "cfa=r7+8 r16=c-8". Many are what other
// implementations got wrong.
func TestInstructions(t *testing.T) {
	adv := uint8(cfaAdvance | 4)
	tests := []struct {
		name string
		cie  asm // in addition to the usual
		fde  asm
		want string // "bad" if it must be refused
	}{
		{"nothing", nil, nil, "cfa=r7+8 r16=c-8"},
		{"advance to the pc", nil, asm{}.u8(cfaAdvance|8, cfaDefCFAOffset, 16), "cfa=r7+16 r16=c-8"},
		{"advance past the pc", nil, asm{}.u8(cfaAdvance|9, cfaDefCFAOffset, 16), "cfa=r7+8 r16=c-8"},
		{"advance1", nil, asm{}.u8(cfaAdvance1, 8, cfaDefCFAOffset, 16, cfaAdvance1, 1, cfaDefCFAOffset, 24), "cfa=r7+16 r16=c-8"},
		{"advance2", nil, asm{}.u8(cfaAdvance2).u16(8).u8(cfaDefCFAOffset, 16, cfaAdvance2).u16(1).u8(cfaDefCFAOffset, 24), "cfa=r7+16 r16=c-8"},
		{"advance4", nil, asm{}.u8(cfaAdvance4).u32(8).u8(cfaDefCFAOffset, 16, cfaAdvance4).u32(1).u8(cfaDefCFAOffset, 24), "cfa=r7+16 r16=c-8"},
		{"advance8", nil, asm{}.u8(cfaAdvance8).u64(8).u8(cfaDefCFAOffset, 16, cfaAdvance8).u64(1).u8(cfaDefCFAOffset, 24), "cfa=r7+16 r16=c-8"},
		{"set_loc, encoded", nil, asm{}.u8(cfaSetLoc).u32(0), "bad"}, // 0 is no place in the function
		{"def_cfa_register", nil, asm{}.u8(cfaDefCFARegister, 6), "cfa=r6+8 r16=c-8"},
		{"def_cfa_sf", nil, asm{}.u8(cfaDefCFASF, 6).sleb(-4), "cfa=r6+32 r16=c-8"},
		{"def_cfa_offset_sf", nil, asm{}.u8(cfaDefCFAOffsetSF).sleb(-4), "cfa=r7+32 r16=c-8"},
		{"def_cfa_expression", nil, asm{}.u8(cfaDefCFAExpression).block([]byte{opBreg0 + 7, 8}), "cfa=exp r16=c-8"},
		{"register of an expression", nil, asm{}.u8(cfaDefCFAExpression).block([]byte{opBreg0 + 7, 8}).u8(cfaDefCFARegister, 6), "bad"},
		{"offset_extended", nil, asm{}.u8(cfaOffsetExt, 3, 2), "cfa=r7+8 r3=c-16 r16=c-8"},
		{"offset_extended_sf", nil, asm{}.u8(cfaOffsetExtSF, 3).sleb(-2), "cfa=r7+8 r3=c+16 r16=c-8"},
		{"negative_offset_extended", nil, asm{}.u8(cfaNegOffsetExt, 3, 2), "cfa=r7+8 r3=c+16 r16=c-8"},
		{"val_offset is factored", nil, asm{}.u8(cfaValOffset, 3, 2), "cfa=r7+8 r3=v-16 r16=c-8"},
		{"val_offset_sf", nil, asm{}.u8(cfaValOffsetSF, 3).sleb(-2), "cfa=r7+8 r3=v+16 r16=c-8"},
		{"register", nil, asm{}.u8(cfaRegister, 3, 12), "cfa=r7+8 r3=r12 r16=c-8"},
		{"undefined, same_value", nil, asm{}.u8(cfaUndefined, 3, cfaSameValue, 12), "cfa=r7+8 r3=u r12=s r16=c-8"},
		{"expression, val_expression", nil, asm{}.u8(cfaExpression, 3).block([]byte{opNop}).u8(cfaValExpression, 12).block(nil), "cfa=r7+8 r3=exp r12=vexp r16=c-8"},
		{"restore to the CIE's rule", asm{}.u8(cfaOffset|3, 5), asm{}.u8(cfaOffset|3, 2, adv, cfaRestore|3), "cfa=r7+8 r3=c-40 r16=c-8"},
		{"restore to nothing", nil, asm{}.u8(cfaOffset|3, 2, adv, cfaRestore|3), "cfa=r7+8 r16=c-8"},
		{"restore_extended", asm{}.u8(cfaOffset|3, 5), asm{}.u8(cfaOffset|3, 2, adv, cfaRestoreExt, 3), "cfa=r7+8 r3=c-40 r16=c-8"},
		{"restore of the return address", nil, asm{}.u8(cfaOffset|16, 2, adv, cfaRestore|16), "cfa=r7+8 r16=c-8"},
		{"remember, restore_state", nil, asm{}.u8(cfaOffset|3, 2, cfaRemember, cfaDefCFA, 6, 16, cfaOffset|12, 3, adv, cfaRestoreState), "cfa=r7+8 r3=c-16 r16=c-8"},
		{"nested states", nil, asm{}.u8(cfaRemember, cfaOffset|3, 2, cfaRemember, cfaOffset|12, 3, cfaRestoreState, cfaRestoreState), "cfa=r7+8 r16=c-8"},
		{"restore_state of nothing", nil, asm{}.u8(cfaRestoreState), "bad"},
		{"remember without end", nil, asm{}.u8(make([]byte, 0)...).bytes([]byte(strings.Repeat("\x0a", maxRemember+1))), "bad"},
		{"args_size", nil, asm{}.u8(cfaArgsSize, 0x90, 1, cfaDefCFAOffset, 16), "cfa=r7+16 r16=c-8"},
		{"negate_ra_state", nil, asm{}.u8(cfaNegateRAState), "cfa=r7+8 r16=c-8 signed"},
		{"negated twice", nil, asm{}.u8(cfaNegateRAState, adv, cfaNegateRAState), "cfa=r7+8 r16=c-8"},
		{"negate_ra_state_with_pc", nil, asm{}.u8(cfaNegateRAStateAtPC), "cfa=r7+8 r16=c-8 signed"},
		{"set_ra_state", nil, asm{}.u8(cfaSetRAState, 1).sleb(-3).u8(cfaDefCFAOffset, 16), "cfa=r7+16 r16=c-8 signed"},
		{"signed is part of the state", nil, asm{}.u8(cfaRemember, cfaNegateRAState, cfaRestoreState), "cfa=r7+8 r16=c-8"},
		{"vector registers are passed over", nil, asm{}.u8(cfaOffset|40, 2, cfaOffsetExt, 0xc8, 1, 2, cfaRestore|40), "cfa=r7+8 r16=c-8"},
		{"operand cut off", nil, asm{}.u8(cfaAdvance4, 1, 2), "bad"},
		{"number cut off", nil, asm{}.u8(cfaDefCFA, 0x80), "bad"},
		{"expression cut off", nil, asm{}.u8(cfaDefCFAExpression, 100, 1), "bad"},
		{"lo_user", nil, asm{}.u8(0x1c), "bad"},
		{"hi_user", nil, asm{}.u8(0x3f), "bad"},
	}
	for _, debug := range []bool{false, true} {
		for _, tt := range tests {
			if debug && strings.Contains(tt.name, "set_loc") {
				continue
			}
			fns := []function{{lo: synthBase + 0x100, size: 0x40, cie: entryRule(arch.AMD64).bytes(tt.cie), fde: tt.fde}}
			m := newSynth(arch.AMD64, objfile.PtrDataRel|objfile.PtrS4, fns)
			if debug {
				m = newDebug(arch.AMD64, fns)
			}
			got, f := rowOf(m, arch.PC{Addr: synthBase + 0x108, Exact: true})
			if f.reason != 0 {
				got = "bad"
			}
			if got != tt.want {
				t.Errorf("%s (debug_frame %v): got %q (%v), want %q", tt.name, debug, got, f, tt.want)
			}
		}
	}
}

// set_loc takes an address as the CIE encodes addresses.
func TestSetLoc(t *testing.T) {
	for _, enc := range []uint8{objfile.PtrAbs, objfile.PtrU4, objfile.PtrS8, objfile.PtrPCRel | objfile.PtrS4, objfile.PtrULEB} {
		fns := []function{{lo: synthBase + 0x100, size: 0x40, enc: enc, abs: enc == objfile.PtrAbs}}
		// Assembled twice: a pointer relative to itself must know where it lies.
		at := uint64(0)
		for range 2 {
			prog := pointerTo(asm{}.u8(cfaSetLoc), enc, synthBase+0x108, at).u8(cfaDefCFAOffset, 16)
			fns[0].fde = prog
			b, _ := frames(arch.AMD64, synthEH, false, fns)
			at = synthEH + uint64(len(b)-len(prog)) + 1
		}
		m := newSynth(arch.AMD64, objfile.PtrDataRel|objfile.PtrS4, fns)
		for pc, want := range map[arch.Addr]string{
			synthBase + 0x107: "cfa=r7+8 r16=c-8", synthBase + 0x108: "cfa=r7+16 r16=c-8"} {
			if got, f := rowOf(m, arch.PC{Addr: pc, Exact: true}); got != want {
				t.Errorf("%#x at %v: got %q %v, want %q", enc, pc, got, f, want)
			}
		}
	}
}

// All that a CIE can say about itself and its FDEs.
func TestCIE(t *testing.T) {
	const plain = "cfa=r7+8 r16=c-8"
	tests := []struct {
		name  string
		f     function
		debug bool
		want  string
	}{
		{"version 1", function{version: 1}, false, plain},
		{"version 3", function{version: 3}, false, plain},
		{"version 4", function{version: 4}, false, plain},
		{"version 2", function{version: 2}, false, "bad"},
		{"no augmentation", function{aug: "\x00", enc: objfile.PtrAbs}, true, "bad"}, // "\0\0": the version's fields begin a byte late
		{"P, L and R", function{aug: "zPLR"}, false, plain},
		{"signal frame", function{aug: "zRS"}, false, plain},
		{"key B", function{aug: "zRB"}, false, plain},
		{"tagged memory", function{aug: "zRG"}, false, plain},
		{"unknown letter behind z", function{aug: "zRX"}, false, plain},
		{"unknown letter", function{aug: "X"}, false, "bad"},
		{"64-bit", function{wide: true}, false, plain},
		{"absolute", function{abs: true}, false, plain},
		{"udata4", function{enc: objfile.PtrU4}, false, plain},
		{"sdata8, pcrel", function{enc: objfile.PtrPCRel | objfile.PtrS8}, false, plain},
		{"uleb", function{enc: objfile.PtrULEB}, false, plain},
		{"debug version 3", function{version: 3}, true, plain},
		{"debug version 4", function{version: 4}, true, plain},
		{"debug 64-bit", function{version: 4, wide: true}, true, plain},
		{"a return address column beyond all", function{version: 3, ra: 200}, false, "bad"},
	}
	for _, tt := range tests {
		tt.f.lo, tt.f.size = synthBase+0x100, 0x40
		fns := []function{tt.f}
		m := newSynth(arch.AMD64, objfile.PtrDataRel|objfile.PtrS4, fns)
		if tt.debug {
			m = newDebug(arch.AMD64, fns)
		}
		got, f := rowOf(m, arch.PC{Addr: synthBase + 0x110})
		if f.reason != 0 {
			got = "bad"
		}
		if got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", tt.name, got, f, tt.want)
		}
	}
}

// However the table of .eh_frame_hdr is encoded, and without one, each
// function is found at its first and last byte, and nothing between.
func TestTableEncodings(t *testing.T) {
	var fns []function
	for i := range uint64(9) {
		fns = append(fns, function{lo: synthBase + 0x100*(i+1), size: 0x40,
			fde: asm{}.u8(cfaDefCFAOffset).uleb(16 + 8*i)})
	}
	for _, enc := range []uint8{objfile.PtrDataRel | objfile.PtrS4, objfile.PtrDataRel | objfile.PtrS8, objfile.PtrPCRel | objfile.PtrS4,
		objfile.PtrU4, objfile.PtrU8, objfile.PtrAbs, objfile.PtrULEB, objfile.PtrDataRel | objfile.PtrSLEB, objfile.PtrOmit} {
		m := newSynth(arch.AMD64, enc, fns)
		for i, f := range fns {
			want := fmt.Sprintf("cfa=r7+%d r16=c-8", 16+8*i)
			for _, at := range []struct {
				pc   arch.PC
				want string
			}{
				{arch.PC{Addr: arch.Addr(f.lo), Exact: true}, want},
				{arch.PC{Addr: arch.Addr(f.lo + f.size - 1), Exact: true}, want},
				{arch.PC{Addr: arch.Addr(f.lo + f.size)}, want}, // a call at the very end
				{arch.PC{Addr: arch.Addr(f.lo)}, "none"},
				{arch.PC{Addr: arch.Addr(f.lo + f.size), Exact: true}, "none"},
			} {
				if got, f := rowOf(m, at.pc); got != at.want {
					t.Errorf("%#x: %v: got %q %v, want %q", enc, at.pc, got, f, at.want)
				}
			}
		}
	}
}

// FDEs of functions without a byte, at the address of the next one, hide
// nothing.
func TestEmptyFunctions(t *testing.T) {
	for _, enc := range []uint8{objfile.PtrDataRel | objfile.PtrS4, objfile.PtrOmit} {
		fns := []function{{lo: synthBase + 0x100, size: 0x40, fde: asm{}.u8(cfaDefCFAOffset, 16)},
			{lo: synthBase + 0x100}, {lo: synthBase + 0x100}, {lo: synthBase + 0x180}}
		m := newSynth(arch.AMD64, enc, fns)
		for want, lo := range map[string]arch.Addr{"cfa=r7+16 r16=c-8": synthBase + 0x130, "none": synthBase + 0x190} {
			if got, f := rowOf(m, arch.PC{Addr: lo, Exact: true}); got != want {
				t.Errorf("%#x: got %q %v, want %q", enc, got, f, want)
			}
		}
	}
}

// In a dump, absolute pointers are where the dynamic loader moved them; in a
// file they are not.
func TestAbsoluteOfFileAndDump(t *testing.T) {
	bias, at := uint64(0x10000000), uint64(synthBase+0x100)
	for _, lo := range []uint64{synthBase + 0x100, at - bias} {
		m := newSynth(arch.AMD64, objfile.PtrOmit, []function{{lo: lo, size: 0x40, abs: true}})
		m.bias = bias
		got, f := rowOf(m, arch.PC{Addr: synthBase + 0x110, Exact: true})
		if got != "cfa=r7+8 r16=c-8" {
			t.Errorf("%#x: got %q %v", lo, got, f)
		}
	}
}

// The dynamic loader does not see .debug_frame: an address in it is always one of
// the file, also where it happens to lie in the image as it was mapped.
func TestDebugFrameIsNotRelocated(t *testing.T) {
	const bias = 0x1000
	m := newDebug(arch.AMD64, []function{{lo: synthBase + 0x2000, size: 0x40}})
	m.bias = bias
	for pc, want := range map[arch.Addr]string{synthBase + 0x2010: "none", synthBase + bias + 0x2010: "cfa=r7+8 r16=c-8"} {
		if got, f := rowOf(m, arch.PC{Addr: pc, Exact: true}); got != want {
			t.Errorf("%v: got %q %v, want %q", pc, got, f, want)
		}
	}
}

// FDEs by the thousand that name one broken CIE, or each a CIE of its own, cost
// neither minutes nor gigabytes.
func TestHostileCIEs(t *testing.T) {
	head := func(b asm, program int) asm {
		body := asm{}.u32(0).u8(1).str("zR").uleb(1).sleb(-8).u8(16).block(asm{}.u8(objfile.PtrU4))
		return b.u32(uint32(len(body) + program)).bytes(body)
	}
	for name, b := range map[string]asm{
		"broken":   head(nil, 60000).bytes(make([]byte, 59999)).u8(0x3f),
		"too many": nil,
	} {
		one := len(b) > 0
		for range 30000 {
			cie := uint32(0)
			if !one {
				cie = uint32(len(b))
				b = head(b, 0)
			}
			at := uint32(len(b))
			b = b.u32(13).u32(at + 4 - cie).u32(synthBase + 0x100).u32(0x40).u8(0)
		}
		m := &synth{arch: arch.AMD64, tables: map[string]arch.Span{}, span: arch.Span{Lo: synthBase, Hi: synthEnd}}
		m.add(synthEH, b)
		m.tables[".eh_frame"] = arch.Span{Lo: synthEH, Hi: synthEH + arch.Addr(len(b))}
		began := time.Now()
		got, f := rowOf(m, arch.PC{Addr: synthBase + 0x110, Exact: true})
		if one != (f.reason == BadInfo) {
			t.Errorf("%s: %q %v", name, got, f)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("%s: it took %v", name, d)
		}
	}
}
