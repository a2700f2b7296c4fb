package arch

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seamwalk/seam/internal/memtest"
)

// A flat is one piece of memory.
type flat = memtest.Piece[Addr]

func flatAt(a Addr, b []byte) flat { return flat{At: a, Data: b} }

// A testImage is a PE file laid out as it is in memory, at the address it was
// linked for, and its function table.
type testImage struct {
	flat
	funcs []PEFunction
	text  [][2]uint32 // RVAs of the code sections
}

// loadPE lays out a PE file for the CPU a. It trusts the file.
func loadPE(t testing.TB, a *Arch, file []byte) *testImage {
	t.Helper()
	le := binary.LittleEndian
	nt := file[le.Uint32(file[0x3c:]):]
	if string(nt[:4]) != "PE\x00\x00" {
		t.Fatal("not a PE file")
	}
	opt := nt[24:]
	m := &testImage{flat: flatAt(Addr(le.Uint64(opt[24:])), make([]byte, le.Uint32(opt[56:])))}
	copy(m.Data, file[:le.Uint32(opt[60:])])
	for i := range int(le.Uint16(nt[6:])) {
		s := opt[int(le.Uint16(nt[20:]))+40*i:]
		rva, n, off := le.Uint32(s[12:]), le.Uint32(s[16:]), le.Uint32(s[20:])
		if v := le.Uint32(s[8:]); v < n {
			n = v
		}
		copy(m.Data[rva:], file[off:off+n])
		if le.Uint32(s[36:])&0x20000000 != 0 {
			m.text = append(m.text, [2]uint32{rva, rva + n})
		}
	}
	dir := m.Data[le.Uint32(opt[112+3*8:]):][:le.Uint32(opt[112+3*8+4:])]
	for ; len(dir) >= a.PE.Entry; dir = dir[a.PE.Entry:] {
		m.funcs = append(m.funcs, a.PE.Function(dir))
	}
	return m
}

// find returns the function that rva lies in.
func (m *testImage) find(rva uint32) *PEFunction {
	lo, hi := 0, len(m.funcs)
	for lo < hi {
		if mid := (lo + hi) / 2; m.funcs[mid].Begin <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || m.funcs[lo-1].End != 0 && rva >= m.funcs[lo-1].End {
		return nil
	}
	return &m.funcs[lo-1]
}

// fixture returns the path of a file in testdata.
func fixture(name string) string { return filepath.Join("testdata", name) }

// slurp reads a file, unpacked if its name ends in .zst.
func slurp(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil && filepath.Ext(path) == ".zst" {
		var z *zstd.Decoder
		if z, err = zstd.NewReader(nil, zstd.WithDecoderMaxWindow(1<<31)); err == nil {
			defer z.Close()
			b, err = z.DecodeAll(b, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// apply runs a rule as an unwinder does.
func apply(a *Arch, mem Memory, r *Rule, regs *Regs) bool {
	base, ok := regs.Get(r.Base)
	if !ok {
		return false
	}
	cfa := Addr(base + uint64(int64(r.Offset)))
	out := *regs
	out.Set(a.SP, uint64(cfa))
	if r.RA != NoReg {
		v, ok := regs.Get(r.RA)
		if !ok {
			return false
		}
		out.Set(a.PC, v)
	}
	for _, s := range r.Saved[:r.N] {
		v, ok := mem.Word(cfa + Addr(int64(s.Off)))
		if !ok {
			return false
		}
		out.Set(s.Reg, v)
	}
	if pc, _ := out.Get(a.PC); r.Signed {
		out.Set(a.PC, uint64(a.Strip(Addr(pc))))
	}
	*regs = out
	return true
}
