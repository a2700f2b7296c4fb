package unwind

import (
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// nowhereScene is a thread that called to from synthBase+0x118 on, by a register
// that holds to if direct is false, else by a call to other code.
func nowhereScene(a *arch.Arch, to uint64, direct bool) (*synth, *arch.Regs) {
	m, r := scene(a, synthBase+0x118, 5, 6, 0)
	m.Pieces = m.Without(0x7000)
	m.add(0x6ff8, asm{}.u64(0x1234).u64(synthBase+0x118).u64(5).u64(6).u64(0))
	call := m.View(synthBase+0x110, 8)
	switch {
	case a.LR != arch.NoReg && direct:
		binary.LittleEndian.PutUint32(call[4:], 0x94000010) // bl
	case a.LR != arch.NoReg:
		binary.LittleEndian.PutUint32(call[4:], 0xd63f0060) // blr x3
	case direct:
		copy(call, "\x90\x90\x90\xe8\x40\x00\x00\x00") // call
	default:
		copy(call, "\x90\x90\x90\x90\x90\x90\xff\xd3") // call rbx
	}
	r.Set(3, to) // rbx and x3
	r.Set(a.PC, to)
	if a.LR != arch.NoReg {
		r.Set(a.LR, synthBase+0x118)
	}
	return m, r
}

// barredAbove is an Options.Executable by which code lies in the image only.
func barredAbove(a arch.Addr) (exec, known bool) { return a >= synthBase && a < synthEnd, true }

// A call to where no code can be, on every CPU: the caller is where the call
// left the return address.
func TestNowhere(t *testing.T) {
	for _, a := range arch.All() {
		for _, to := range []uint64{0, 0x18, 0x7010, 0x7f0012345678, 0xffffffffffffffff} {
			for _, direct := range []bool{false, true} {
				m, r := nowhereScene(a, to, direct)
				fs, stop := m.unwinder(&Options{Executable: barredAbove}).NewWalker().Walk(nil, r)
				if len(fs) < 2 || fs[1].PC.Addr != synthBase+0x118 || fs[1].PC.Exact || fs[1].By != ByPrologue {
					t.Errorf("%s: %#x, direct %v: %v, %+v", a.Name, to, direct, fs, stop)
				}
			}
		}
	}
}

// What may be code is not taken for a call into nowhere; nor is, without
// Options.Executable, any but the lowest addresses.
func TestNowhereMayBeCode(t *testing.T) {
	for _, a := range arch.All() {
		for _, exec := range []func(arch.Addr) (bool, bool){nil,
			func(arch.Addr) (bool, bool) { return true, true },
			func(arch.Addr) (bool, bool) { return false, false }} {
			m, r := nowhereScene(a, 0x7f0012345678, false)
			u := m.unwinder(&Options{Executable: exec})
			if fs, stop := u.NewWalker().Walk(nil, r); len(fs) != 1 || stop.Reason != UnknownCode {
				t.Errorf("%s: %v, %+v", a.Name, fs, stop)
			}
			r.Set(a.PC, 0)
			r.Set(3, 0)
			if fs, stop := u.NewWalker().Walk(nil, r); exec == nil && len(fs) < 2 {
				t.Errorf("%s: a null pointer: %v, %+v", a.Name, fs, stop)
			}
		}
	}
}

// A thread that a return, or who knows what, took to where no code can be has no
// known caller: a word that happens to be a return address is none.
func TestNowhereNoCall(t *testing.T) {
	const to = 0x7f0012345678
	for _, a := range arch.All() {
		for _, c := range []struct {
			name   string
			change func(m *synth, r *arch.Regs)
			want   Reason
		}{
			{"no call before it", func(m *synth, r *arch.Regs) { copy(m.View(synthBase+0x110, 8), "\x90\x90\x90\x90\x90\x90\x90\x90") }, NoCode},
			{"returned", func(m *synth, r *arch.Regs) {
				if a.LR != arch.NoReg {
					r.Set(a.LR, to)
				}
				binary.LittleEndian.PutUint64(m.View(0x6ff8, 8), to)
			}, NoCode},
			{"returns to data", func(m *synth, r *arch.Regs) {
				if a.LR != arch.NoReg {
					r.Set(a.LR, 0x7018)
				}
				binary.LittleEndian.PutUint64(m.View(0x7000, 8), 0x7018)
			}, NoCode},
			{"no stack", func(m *synth, r *arch.Regs) {
				m.Pieces = m.Without(0x6ff8)
				r.Forget(a.LR)
			}, MemoryMissing},
		} {
			m, r := nowhereScene(a, to, true)
			c.change(m, r)
			fs, stop := m.unwinder(&Options{Executable: barredAbove}).NewWalker().Walk(nil, r)
			if c.want == MemoryMissing && a.LR != arch.NoReg {
				c.want = RegisterUnknown
			}
			if len(fs) != 1 || stop.Reason != c.want {
				t.Errorf("%s, %s: %v, %+v", a.Name, c.name, fs, stop)
			}
		}
	}
}
