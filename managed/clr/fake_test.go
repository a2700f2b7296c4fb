package clr

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/loader"
)

// A fakeMemory is what a made process holds, by aligned word.
type fakeMemory map[arch.Addr]uint64

func (m fakeMemory) put(a arch.Addr, v uint64, size int) {
	for i := range size {
		at := a + arch.Addr(i)
		shift := 8 * (at & 7)
		m[at&^7] = m[at&^7]&^(0xff<<shift) | v>>(8*i)&0xff<<shift
	}
}

func (m fakeMemory) word(a arch.Addr, v arch.Addr) { m.put(a, uint64(v), 8) }

func (m fakeMemory) bytes(a arch.Addr, b []byte) {
	for i, c := range b {
		m.put(a+arch.Addr(i), uint64(c), 1)
	}
}

func (m fakeMemory) utf16(a arch.Addr, s string) {
	for i, c := range []byte(s + "\x00") {
		m.put(a+arch.Addr(2*i), uint64(c), 2)
	}
}

// core writes the memory as an ELF core of a process with one thread.
func (m fakeMemory) core(t testing.TB) *loader.Process {
	t.Helper()
	var at []arch.Addr
	for a := range m {
		at = append(at, a)
	}
	slices.Sort(at)
	var c memtest.Core
	c.Thread(100, 0, 0)
	for _, a := range at {
		if n := len(c.Loads); n == 0 || c.Loads[n-1].Addr+uint64(len(c.Loads[n-1].Data)) != uint64(a) {
			c.Loads = append(c.Loads, memtest.Load{Addr: uint64(a), Flags: elf.PF_R | elf.PF_W})
		}
		l := &c.Loads[len(c.Loads)-1]
		l.Data = binary.LittleEndian.AppendUint64(l.Data, m[a])
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// fakePointer is the address of the runtime variable in slot i of the
// contract's pointers.
func fakePointer(i int) arch.Addr { return 0x50000000 + 0x10000*arch.Addr(i) }

// fakeRuntime is a .NET 10 with the layouts of Linux, without an image.
func fakeRuntime(t testing.TB, p *loader.Process) *Runtime {
	t.Helper()
	r := &Runtime{proc: p, arch: arch.AMD64, Version: "10.0.0", Image: &loader.Image{}}
	if p != nil {
		r.mem, r.arch = p.Memory, p.Arch
	}
	r.data = fakeContract(t)
	if err := r.layouts(); err != nil {
		t.Fatal(err)
	}
	return r
}

// fakeContract is what the descriptor of a .NET 10 for Linux gives, its pointers
// those of fakePointer.
func fakeContract(t testing.TB) *contract {
	t.Helper()
	text, err := layouts.ReadFile("layouts/net10-linux-amd64.json")
	if err != nil {
		t.Fatal(err)
	}
	ptrs := make([]uint64, 64)
	for i := range ptrs {
		ptrs[i] = uint64(fakePointer(i))
	}
	c, err := parseContract(text, ptrs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
