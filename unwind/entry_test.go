package unwind

import (
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// How far from an entry point a frame is taken for the outermost.
func TestEntry(t *testing.T) {
	const at = synthBase + 0x800
	for _, a := range arch.All() {
		// Eight instructions of 8 bytes; the second and third call, the fifth jumps.
		other, call, jump := "\x48\x8d\x84\x24\x00\x00\x00\x00", "\x66\x66\x90\xe8\x00\x00\x00\x00", "\x66\x66\x90\xe9\x00\x00\x00\x00"
		if a.LR != arch.NoReg {
			other, call, jump = "\x1f\x20\x03\xd5\x1f\x20\x03\xd5", "\x1f\x20\x03\xd5\x40\x00\x00\x94", "\x1f\x20\x03\xd5\x40\x00\x00\x14"
		}
		m := newSynth(a, objfile.PtrDataRel|objfile.PtrS4, nil)
		code := m.View(at, 64)
		for i, c := range []string{other, call, call, other, jump, call, other, other} {
			copy(code[8*i:], c)
		}
		u := m.unwinder(&Options{Entries: func() []arch.Addr { return []arch.Addr{0x10, at} }})
		for _, c := range []struct {
			pc   arch.PC
			want Outcome
		}{
			{arch.PC{Addr: at, Exact: true}, Final},
			{arch.PC{Addr: at + 8, Exact: true}, Final},
			{arch.PC{Addr: at + 16, Exact: true}, Final},
			{arch.PC{Addr: at + 24, Exact: true}, NoInfo}, // the second call may not come back
			{arch.PC{Addr: at}, NoInfo},
			{arch.PC{Addr: at + 8}, NoInfo}, // nothing called there
			{arch.PC{Addr: at + 16}, Final},
			{arch.PC{Addr: at + 24}, Final},
			{arch.PC{Addr: at + 32}, NoInfo},
			{arch.PC{Addr: at + 48}, NoInfo}, // behind a jump
			{arch.PC{Addr: at - 8}, NoInfo},
		} {
			s := &Step{PC: c.pc, Mem: m, Arch: a}
			if got := openEntry(u, nil).Unwind(s); got != c.want {
				t.Errorf("%s: at %+d, exact %v: %v, want %v", a.Name, int64(c.pc.Addr)-at, c.pc.Exact, got, c.want)
			}
		}
		r := arch.Regs{}
		r.Set(a.PC, at)
		r.Set(a.SP, 0x7000)
		for range 2 { // the second answer comes from the cache
			w := u.NewWalker()
			if fs, stop := w.Walk(nil, &r); len(fs) != 1 || stop.Reason != EntryPoint || !stop.Reason.Complete() || stop.By != ByEntry {
				t.Errorf("%s: %v %+v", a.Name, fs, stop)
			}
		}
		// Code that is missing proves nothing.
		binary.LittleEndian.PutUint32(code, 0)
		m.Pieces = m.Without(synthBase)
		if got := openEntry(u, nil).Unwind(&Step{PC: arch.PC{Addr: at + 16}, Mem: m, Arch: a}); got != NoInfo {
			t.Errorf("%s: without code: %v", a.Name, got)
		}
	}
}
