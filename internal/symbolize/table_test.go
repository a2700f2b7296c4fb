package symbolize

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// A sym is a symbol of a table that a test makes.
type sym struct {
	name       string
	at, size   uint64
	bind, kind byte
	section    uint16
}

const (
	global, weak, local = byte(elf.STB_GLOBAL), byte(elf.STB_WEAK), byte(elf.STB_LOCAL)
	fn, label, object   = byte(elf.STT_FUNC), byte(elf.STT_NOTYPE), byte(elf.STT_OBJECT)
)

// symtab builds an Elf64_Sym table and its string table.
func symtab(list []sym) (syms, strs []byte) {
	strs = []byte{0}
	syms = make([]byte, objfile.SymSize)
	for _, s := range list {
		b := make([]byte, objfile.SymSize)
		binary.LittleEndian.PutUint32(b, uint32(len(strs)))
		b[4] = s.bind<<4 | s.kind
		binary.LittleEndian.PutUint16(b[6:], s.section)
		binary.LittleEndian.PutUint64(b[8:], s.at)
		binary.LittleEndian.PutUint64(b[16:], s.size)
		syms = append(syms, b...)
		strs = append(append(strs, s.name...), 0)
	}
	return syms, strs
}

func TestFind(t *testing.T) {
	list := []sym{
		// Aliases, as in glibc's .symtab.
		{"__GI___libc_malloc", 0x1000, 0x100, local, fn, 1},
		{"__libc_malloc", 0x1000, 0x100, global, fn, 1},
		{"malloc", 0x1000, 0x100, global, fn, 1},
		{"__open64", 0x1100, 0x80, weak, fn, 1},
		{"open", 0x1100, 0x80, weak, fn, 1},
		// A global name of an old version beats a local one.
		{"__ieee754_fmod", 0x1200, 0x80, local, fn, 1},
		{"__fmod_finite@GLIBC_2.15", 0x1200, 0x80, global, fn, 1},
		// Assembly: no sizes, and labels within a function that has one.
		{"__restore_rt", 0x1300, 0, local, label, 1},
		{"clone3", 0x1320, 0x40, global, fn, 1},
		{".Lloop", 0x1330, 0, local, label, 1},
		{"nested", 0x1340, 0x10, local, fn, 1},
		{"$x", 0x1400, 0, local, label, 1},
		{"data", 0x1500, 0x10, global, object, 1},
		{"_end", 0x1600, 0, global, label, 2}, // in a section without functions
		{"undefined", 0x1700, 0x10, global, fn, 0},
		{"absolute", 0x1800, 0x10, global, fn, 0xfff1},
		{"tail", 0x1900, 0, global, fn, 1},
	}
	syms, strs := symtab(list)
	tests := []struct {
		at       arch.LinkAddr
		complete bool
		want     string
	}{
		{0xfff, true, ""}, {0x1000, true, "malloc"}, {0x10ff, true, "malloc"},
		{0x1100, true, "open"}, {0x1180, true, ""}, // behind its end
		{0x1210, true, "__fmod_finite@GLIBC_2.15"},
		{0x1300, true, "__restore_rt"}, {0x131f, true, "__restore_rt"},
		{0x1320, true, "clone3"}, {0x1335, true, "clone3"}, {0x1344, true, "nested"}, {0x1354, true, "clone3"},
		{0x1400, true, ""}, {0x1505, true, ""}, {0x1600, true, ""}, {0x1705, true, ""}, {0x1805, true, ""},
		{0x1900, true, "tail"}, {0x1fff, true, "tail"}, {0x2000, true, ""},
		{0x19ff, false, "tail"}, {0x1a00, false, ""},
	}
	for _, tt := range tests {
		reach := arch.LinkAddr(unsizedReach)
		if tt.complete {
			reach = 0x2000
		}
		tab := parseSymbols(syms, strs, reach, 0x2000)
		got := ""
		if e, ok := tab.find(tt.at); ok {
			got = tab.name(e)
		}
		if got != tt.want {
			t.Errorf("%#x (complete %v): %q, want %q", tt.at, tt.complete, got, tt.want)
		}
	}
}

// TestNM compares with nm, which reads the same tables, on this test's own
// binary: every function that nm lists is found at its address.
func TestNM(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("needs nm")
	}
	out, err := exec.Command(nm, "--defined-only", self).Output()
	if err != nil || len(out) == 0 {
		t.Skipf("%s lists nothing of %s: %v", nm, filepath.Base(self), err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	f, err := objfile.ParseELF(data)
	if err != nil {
		t.Skip("not an ELF system")
	}
	tab := parseSymbols(f.Section(data, ".symtab"), f.Section(data, ".strtab"), 1<<62, 1<<62)
	n, bad := 0, 0
	for line := range strings.Lines(string(out)) {
		p := strings.Fields(line)
		if len(p) != 3 || !strings.ContainsAny(p[1], "Tt") {
			continue
		}
		var at uint64
		for _, c := range p[0] {
			at = at<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
		}
		n++
		e, ok := tab.find(arch.LinkAddr(at))
		if !ok || uint64(e.at) != at {
			bad++
			t.Errorf("%s at %#x is not found (%v)", p[2], at, ok)
		}
		if bad > 5 {
			break
		}
	}
	if n < 1000 {
		t.Errorf("nm lists only %d functions", n)
	}
}

func FuzzSymbols(f *testing.F) {
	syms, strs := symtab([]sym{{"a", 0x1000, 0x10, global, fn, 1}, {"b", 0x1000, 0, weak, label, 1}, {"c", 0x1008, ^uint64(0), local, fn, 1}})
	f.Add(syms, strs, uint64(0x1004), uint64(1<<40))
	f.Fuzz(func(t *testing.T, syms, strs []byte, at, reach uint64) {
		tab := parseSymbols(syms, strs, arch.LinkAddr(reach), 1<<40)
		if tab == nil {
			return
		}
		if e, ok := tab.find(arch.LinkAddr(at)); ok {
			tab.name(e)
			if uint64(e.at) > at || uint64(e.end) <= at {
				t.Errorf("%#x found in [%#x, %#x)", at, e.at, e.end)
			}
		}
	})
}

// Of two names that NativeAOT gives a method, the one with its class is taken;
// names of C libraries that look alike are not taken for such.
func TestQualifies(t *testing.T) {
	for _, c := range []struct {
		long, short string
		want        bool
	}{
		{"S_P_CoreLib_System_Runtime_EH__RhThrowHwEx", "RhThrowHwEx", true},
		{"RhThrowHwEx", "S_P_CoreLib_System_Runtime_EH__RhThrowHwEx", false},
		{"__GI___open64", "open64", false},
		{"__libc_malloc", "malloc", false},
		{"__RhThrowHwEx", "RhThrowHwEx", false},
		{"a___b", "b", false},
		{"a__", "", false},
	} {
		if got := qualifies([]byte(c.long), []byte(c.short)); got != c.want {
			t.Errorf("%s of %s: %v", c.long, c.short, got)
		}
	}
}
