package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// TestModuleSection: code of a ReadyToRun image is found by the image's Module where
// the dump lacks a level of the map of ranges, and is what the map says where that
// is whole. A Module that does not say the same is not believed.
func TestModuleSection(t *testing.T) {
	f := readFixture(t, "net10-r2r")
	whole := f.edited(nil)
	var s rangeSection
	whole.sections(func(of rangeSection) bool {
		if got, ok := whole.moduleSection(of.span.Lo + 1); of.r2r != 0 && ok && got.r2r == of.r2r {
			s = of
		}
		return s.r2r == 0
	})
	if s.r2r == 0 {
		t.Fatal("no image is found by its Module")
	}
	var ip arch.Addr
	var want Code
	for ip = s.span.Lo; ip < s.span.Hi; ip += 16 {
		if c, missing := whole.CodeAt(ip); missing == 0 && c.Method != 0 {
			want = c
			break
		}
	}
	if want.Kind != code.ReadyToRun {
		t.Fatalf("no method in %v", s.span)
	}
	slot := field(whole.ranges, whole.codeLayout.MapTop)
	for n := rangeLevels - 1; n > 0; n-- {
		i := uint64(ip) >> (rangeLeafShift + rangeLevelBits*n) % rangeSlots
		v, _ := whole.word(slot + arch.Addr(8*i))
		slot = arch.Addr(v &^ collectibleBit)
	}
	slot += arch.Addr(8 * (uint64(ip) >> rangeLeafShift % rangeSlots))
	cut := f.without(slot, 8)
	if c, missing := cut.CodeAt(ip); c != want || missing != 0 {
		t.Errorf("%v is in %+v, missing %v; want %+v", ip, c, missing, want)
	}
	if _, ok := cut.moduleSection(0x1000); ok {
		t.Error("an address of no image is in one")
	}
	info, _ := whole.word(field(s.r2r, whole.codeLayout.ModuleR2R))
	for _, at := range []arch.Addr{
		arch.Addr(info), // its Module
		field(arch.Addr(info), whole.codeLayout.R2RHeader),
		field(s.r2r, whole.codeLayout.ModuleR2R),
		field(s.r2r, whole.names.ModBase),
	} {
		if got, ok := f.set(at, 0x1234).moduleSection(ip); ok {
			t.Errorf("with another word at %v it is in %+v", at, got)
		}
	}
}

// TestModuleSectionOfNet8 reads a dump whose map of ranges lacks the way to the
// framework's own library, in which two of its threads have frames.
func TestModuleSectionOfNet8(t *testing.T) {
	r := readFixture(t, "net8-seeds").edited(nil)
	for _, ip := range []arch.Addr{0x7f54076f5496, 0x7f54077f1464} {
		if _, ok, missing := r.section(ip); ok || missing == 0 {
			t.Errorf("the map has a section of %v", ip)
		}
		if s, ok := r.moduleSection(ip); !ok || !s.span.Has(ip) {
			t.Errorf("%v: section %+v, %v", ip, s, ok)
		}
		if c, missing := r.CodeAt(ip); c.Kind != code.ReadyToRun || c.Body.Lo == 0 {
			t.Errorf("%v is in %+v, missing %v", ip, c, missing)
		}
	}
}

// TestModuleSectionAgainstTheMap holds what the Modules say against the map of
// ranges, for each ReadyToRun image of recorded dumps: they may not know one, and
// are never wrong.
func TestModuleSectionAgainstTheMap(t *testing.T) {
	known, refused := 0, 0
	for _, name := range append([]string{"net9-scenarios-x64", "net10-r2r-arm64"}, recorded...) {
		file := "normal.zst"
		if name == "net10-r2r-arm64" {
			file = "dump.zst"
		}
		p, err := loader.Open(corpus.Path(t, name, file), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, warns := Open(p)
		if len(rts) != 1 {
			t.Fatal(name, warns)
		}
		r := rts[0]
		r.sections(func(s rangeSection) bool {
			if s.r2r == 0 {
				return true
			}
			got, ok := r.moduleSection(s.span.Lo + (s.span.Hi-s.span.Lo)/2)
			switch {
			case !ok:
				refused++
				t.Logf("%s: %v is not found", name, s.span)
			case got.r2r != s.r2r || got.span.Lo != s.span.Lo || got.flags&(rangeCodeHeap|rangeList) != 0:
				t.Errorf("%s: %+v, want %+v", name, got, s)
			default:
				known++
			}
			return true
		})
	}
	if t.Logf("%d images, %d of them not found", known+refused, refused); known < 40 {
		t.Errorf("%d images were found by their Modules", known)
	}
}
