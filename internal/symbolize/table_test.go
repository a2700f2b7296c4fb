package symbolize

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/ulikunitz/xz"
)

// A sym is a symbol of a table that a test makes.
type sym struct {
	name       string
	at, size   uint64
	bind, kind byte
	section    uint16
}

const (
	global, weak, local = 1, stbWeak, stbLocal
	fn, label, object   = sttFunc, sttNoType, 1
)

// symtab builds an Elf64_Sym table and its string table.
func symtab(list []sym) (syms, strs []byte) {
	strs = []byte{0}
	syms = make([]byte, symSize)
	for _, s := range list {
		b := make([]byte, symSize)
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
		tab := parseSymbols(syms, strs, tt.complete, 0x2000)
		got := ""
		if e, ok := tab.find(tt.at); ok {
			got = tab.name(e)
		}
		if got != tt.want {
			t.Errorf("%#x (complete %v): %q, want %q", tt.at, tt.complete, got, tt.want)
		}
	}
}

// Sizes in ELF64, and types of sections.
const (
	ehSize, shSize     = 64, 64
	shtSymtab, shtNote = 2, 7
)

// elf makes a file of the given sections, with a section table behind them.
func elf(sections map[string][]byte, types map[string]uint32, links map[string]string) []byte {
	names := []string{""}
	for _, n := range []string{".note.gnu.build-id", ".symtab", ".strtab", ".shstrtab"} {
		if _, ok := sections[n]; ok || n == ".shstrtab" {
			names = append(names, n)
		}
	}
	index := map[string]uint32{}
	shstr := []byte{0}
	at := map[string]uint32{}
	for i, n := range names {
		index[n] = uint32(i)
		if n != "" {
			at[n] = uint32(len(shstr))
			shstr = append(append(shstr, n...), 0)
		}
	}
	sections[".shstrtab"] = shstr
	file := make([]byte, ehSize)
	copy(file, "\x7fELF\x02\x01\x01")
	head := make([]byte, 0, len(names)*shSize)
	for _, n := range names {
		h := make([]byte, shSize)
		if n != "" {
			le := binary.LittleEndian
			le.PutUint32(h, at[n])
			le.PutUint32(h[4:], types[n])
			le.PutUint64(h[24:], uint64(len(file)))
			le.PutUint64(h[32:], uint64(len(sections[n])))
			le.PutUint32(h[40:], index[links[n]])
			file = append(file, sections[n]...)
		}
		head = append(head, h...)
	}
	le := binary.LittleEndian
	le.PutUint64(file[40:], uint64(len(file)))
	le.PutUint16(file[58:], shSize)
	le.PutUint16(file[60:], uint16(len(names)))
	le.PutUint16(file[62:], uint16(index[".shstrtab"]))
	return append(file, head...)
}

func debugFile() []byte {
	syms, strs := symtab([]sym{{"hidden_helper", 0x1000, 0x40, local, fn, 1}})
	note := []byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\xde\xad\xbe\xef")
	return elf(map[string][]byte{".note.gnu.build-id": note, ".symtab": syms, ".strtab": strs},
		map[string]uint32{".note.gnu.build-id": shtNote, ".symtab": shtSymtab}, map[string]string{".symtab": ".strtab"})
}

func TestUnpackXZ(t *testing.T) {
	want := bytes.Repeat(debugFile(), 300)
	var packed bytes.Buffer
	w, err := xz.WriterConfig{BlockSize: 1 << 16}.NewWriter(&packed) // many blocks
	if err != nil {
		t.Fatal(err)
	}
	w.Write(want)
	w.Close()
	got, err := unpackXZ(packed.Bytes())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("unpacked %d bytes of %d, error %v", len(got), len(want), err)
	}
	for n := range packed.Len() {
		unpackXZ(packed.Bytes()[:n])
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
	f := loader.ParseDebugFile(data)
	if f == nil {
		t.Skip("not an ELF system")
	}
	tab := parseSymbols(f.Section(".symtab"), f.Section(".strtab"), true, 1<<62)
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
	f.Add(syms, strs, uint64(0x1004), true)
	f.Fuzz(func(t *testing.T, syms, strs []byte, at uint64, complete bool) {
		tab := parseSymbols(syms, strs, complete, 1<<40)
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

func FuzzDebugFile(f *testing.F) {
	f.Add(debugFile())
	f.Fuzz(func(t *testing.T, b []byte) {
		e := loader.ParseDebugFile(b)
		parseSymbols(e.Section(".symtab"), e.Section(".strtab"), true, 1<<40)
	})
}

func FuzzUnpackXZ(f *testing.F) {
	var packed bytes.Buffer
	w, _ := xz.NewWriter(&packed)
	w.Write(debugFile())
	w.Close()
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) { unpackXZ(b) })
}
