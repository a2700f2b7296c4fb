package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
)

// TestComponents: a composite image leads by MVID to the table of each component's
// entry points; two components of one MVID lead to none, and a list that is not at
// hand is none. TestEntryMap has a real one.
func TestComponents(t *testing.T) {
	const header, base = 0x1000, 0x10000
	made := func(change func(m fakeMemory)) map[string]entryTables {
		m := fakeMemory{}
		m.put(header, r2rSignature, 4)
		m.put(header+r2rCount, 2, 4)
		for i, s := range [][3]uint64{{r2rComponents, 0x100, 3 * componentSize}, {r2rMVIDs, 0x200, 3 * mvidSize}} {
			at := arch.Addr(header + r2rSections + i*r2rSectionLen)
			m.put(at, s[0], 4)
			m.put(at+4, s[1], 4)
			m.put(at+8, s[2], 4)
		}
		for i := range arch.Addr(3) {
			core := 0x300 + 0x40*i
			m.put(base+0x100+i*componentSize, 0, 8)
			m.put(base+0x100+i*componentSize+componentHeader, uint64(core)|0x2c<<32, 8)
			m.put(base+core, 1<<32, 8)
			m.put(base+core+coreSections, r2rEntryPoints, 4)
			m.put(base+core+coreSections+4, uint64(0x500+0x10*i)|0x10<<32, 8)
			m.put(base+0x200+i*mvidSize, uint64(i+1), 8)
			m.put(base+0x200+i*mvidSize+8, 0x0807060504030201, 8)
		}
		if change != nil {
			change(m)
		}
		return fakeRuntime(t, m.core(t)).components(header, base)
	}
	const second = "00000002000000000102030405060708"
	got := made(nil)
	if e := got[second]; len(got) != 3 || e.rows != base+0x510 || e.size != 0x10 {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct {
		what   string
		change func(m fakeMemory)
		n      int
	}{
		{"one MVID twice", func(m fakeMemory) { m.put(base+0x200, 2, 8) }, 2},
		{"a component without methods", func(m fakeMemory) { m.put(base+0x340+coreSections, r2rDebugInfo, 4) }, 3},
		{"a header elsewhere", func(m fakeMemory) { m.put(base+0x110+componentHeader, 0x7fff0000, 8) }, 0},
		{"a list beyond the image", func(m fakeMemory) { m.put(header+r2rSections+4, 0x7fff0000, 4) }, 0},
		{"no list", func(m fakeMemory) { m.put(header+r2rCount, 0, 4) }, 0},
	} {
		if got := made(c.change); len(got) != c.n || got[second].rows != 0 {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}
