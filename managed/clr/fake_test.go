package clr

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
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
	le := binary.LittleEndian
	type segment struct {
		addr arch.Addr
		data []byte
	}
	var segs []segment
	for _, a := range at {
		if n := len(segs); n == 0 || segs[n-1].addr+arch.Addr(len(segs[n-1].data)) != a {
			segs = append(segs, segment{addr: a})
		}
		s := &segs[len(segs)-1]
		s.data = le.AppendUint64(s.data, m[a])
	}
	note := make([]byte, 12+8+336) // NT_PRSTATUS
	le.PutUint32(note, 5)
	le.PutUint32(note[4:], 336)
	le.PutUint32(note[8:], uint32(elf.NT_PRSTATUS))
	copy(note[12:], "CORE")
	le.PutUint32(note[20+32:], 100)

	head := make([]byte, 64+56*(1+len(segs)))
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint16(head[16:], uint16(elf.ET_CORE))
	le.PutUint16(head[18:], uint16(elf.EM_X86_64))
	le.PutUint32(head[20:], 1)
	le.PutUint64(head[32:], 64)
	le.PutUint16(head[52:], 64)
	le.PutUint16(head[54:], 56)
	le.PutUint16(head[56:], uint16(1+len(segs)))
	off := len(head)
	ph := func(i int, typ elf.ProgType, a arch.Addr, n int) {
		b := head[64+56*i:]
		le.PutUint32(b, uint32(typ))
		le.PutUint32(b[4:], uint32(elf.PF_R|elf.PF_W))
		le.PutUint64(b[8:], uint64(off))
		le.PutUint64(b[16:], uint64(a))
		le.PutUint64(b[32:], uint64(n))
		le.PutUint64(b[40:], uint64(n))
		off += n
	}
	ph(0, elf.PT_NOTE, 0, len(note))
	body := note
	for i, s := range segs {
		ph(i+1, elf.PT_LOAD, s.addr, len(s.data))
		body = append(body, s.data...)
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, append(head, body...), 0o600); err != nil {
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
