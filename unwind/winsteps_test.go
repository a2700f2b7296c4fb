package unwind

import (
	"bufio"
	"bytes"
	"debug/pe"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
)

// A Windows program was single-stepped. At every instruction the walk, by the
// image's own directory of functions, must give the calls really made, with
// the registers that a callee must preserve there.
func TestEveryInstructionOfWindows(t *testing.T) {
	dir := filepath.Join(corpus.Path(t), "steps-win-x64")
	exe, err := os.ReadFile(filepath.Join(dir, "steps.exe"))
	if err != nil {
		t.Skip(err)
	}
	f, err := pe.NewFile(bytes.NewReader(exe))
	if err != nil {
		t.Fatal(err)
	}
	head := f.OptionalHeader.(*pe.OptionalHeader64)
	base := arch.Addr(head.ImageBase)
	m := &synth{arch: arch.AMD64, bias: head.ImageBase, span: arch.Span{Lo: base, Hi: base + arch.Addr(head.SizeOfImage)}}
	mem := &memtest.Sparse[arch.Addr]{Words: map[arch.Addr]uint64{}, Lo: 0x700000, Hi: 0x900000, Images: m}
	m.add(base, exe[:head.SizeOfHeaders])
	for _, s := range f.Sections {
		if b, err := s.Data(); err == nil {
			m.add(base+arch.Addr(s.VirtualAddress), b)
		}
	}
	d := head.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXCEPTION]
	lo := base + arch.Addr(d.VirtualAddress)
	m.tables = map[string]arch.Span{".pdata": {Lo: lo, Hi: lo + arch.Addr(d.Size)}}

	// mingw's ___chkstk_ms pushes, and its entry says that it does not.
	odd := arch.Span{}
	symbols, _ := os.ReadFile(filepath.Join(dir, "symbols.txt"))
	for l := range strings.Lines(string(symbols)) {
		if f := strings.Fields(l); len(f) == 3 && f[2] == "___chkstk_ms" {
			v, _ := strconv.ParseUint(f[0], 16, 64)
			odd = arch.Span{Lo: arch.Addr(v), Hi: arch.Addr(v) + 0x32}
		}
	}

	w := New(arch.AMD64.On(arch.Windows), mem, []Image{m}, nil).NewWalker()
	saved := []arch.Reg{3, 6, 4, 5, 12, 13, 14, 15}
	type call struct {
		parent uint64
		v      [10]uint64 // return address, where it lies, registers as in saved
	}
	calls := map[uint64]call{}
	states, bad := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(unzstd(t, filepath.Join(dir, "steps.txt.zst"))))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		hex := func(i int) uint64 {
			v, err := strconv.ParseUint(f[i], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		switch f[0] {
		case "W":
			mem.Words[arch.Addr(hex(1))] = hex(2)
		case "C":
			c := call{parent: hex(2)}
			for i := range c.v {
				c.v[i] = hex(3 + i)
			}
			calls[hex(1)] = c
		case "S":
			if odd.Has(arch.Addr(hex(1))) {
				continue
			}
			states++
			var r arch.Regs
			r.Set(16, hex(1))
			r.Set(7, hex(2))
			for i, reg := range saved {
				r.Set(reg, hex(4+i))
			}
			w.Start(&r, true, nil)
			for id := hex(3); id != 0; id = calls[id].parent {
				c := calls[id]
				ok := w.Next() && uint64(w.Frame().PC.Addr) == c.v[0] && uint64(w.Frame().SP) == c.v[1]+8
				for i, reg := range saved {
					v, known := w.Regs().Get(reg)
					ok = ok && known && v == c.v[2+i]
				}
				if !ok {
					if bad++; bad < 10 {
						t.Errorf("at %#x: %+v, %+v, want %#x", hex(1), w.Frame(), w.Stop(), c.v)
					}
					break
				}
			}
		}
	}
	t.Logf("%d states, %d wrong", states, bad)
	if states < 23000 {
		t.Errorf("only %d states", states)
	}
}
