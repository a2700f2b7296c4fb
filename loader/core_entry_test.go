package loader

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// The entry points are the program's by the auxiliary vector, and the dynamic
// linker's by its header.
func TestEntries(t *testing.T) {
	const base = 0x7f0000000000
	le := binary.LittleEndian
	head := make([]byte, pageSize)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint16(head[16:], uint16(elf.ET_DYN))
	le.PutUint16(head[18:], uint16(elf.EM_X86_64))
	le.PutUint64(head[24:], 0x540) // e_entry
	le.PutUint64(head[32:], objfile.ELFHeaderSize)
	le.PutUint16(head[54:], objfile.ProgSize)
	le.PutUint16(head[56:], 1)
	copy(head[objfile.ELFHeaderSize:], putProg(nil, objfile.Prog{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Filesz: pageSize, Memsz: pageSize}, pageSize))
	for _, c := range []struct {
		name string
		auxv []uint64
		want []arch.Addr
	}{
		{"both", []uint64{atEntry, 0x401000, atBase, base}, []arch.Addr{0x401000, base + 0x540}},
		{"static", []uint64{atEntry, 0x401000, atBase, 0}, []arch.Addr{0x401000}},
		{"no header at the base", []uint64{atEntry, 0x401000, atBase, base + pageSize}, []arch.Addr{0x401000}},
		{"nothing", nil, nil},
	} {
		b := buildCore{loads: []buildLoad{{addr: base, data: head, flags: elf.PF_R | elf.PF_X}}}
		b.thread(1, base, 0)
		b.mapped(fileNote{Span: arch.Span{Lo: base, Hi: base + pageSize}, path: "/lib/ld.so"})
		if c.auxv != nil {
			var d []byte
			for _, v := range append(c.auxv, 0, 0) {
				d = le.AppendUint64(d, v)
			}
			b.note("CORE", ntAuxv, d)
		}
		if got := b.open(t, nil).Entries(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
