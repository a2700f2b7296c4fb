package loader

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

func isELFCore(head []byte) bool {
	if len(head) < 18 || string(head[:4]) != elf.ELFMAG {
		return false
	}
	// A big-endian core is one too; opening it says why it cannot be read.
	return binary.LittleEndian.Uint16(head[16:]) == uint16(elf.ET_CORE) ||
		head[elf.EI_DATA] == byte(elf.ELFDATA2MSB) && binary.BigEndian.Uint16(head[16:]) == uint16(elf.ET_CORE)
}

// A core is an ELF core while it is being opened.
type core struct {
	data    []byte
	opt     Options
	p       *Process
	loads   []objfile.Prog
	whole   bool // the file has all program headers, and the limit allows them
	notes   coreNotes
	noted   uint64     // bytes of notes read
	current uint32     // TID of the thread whose notes follow, 0 before the first
	kept    *keptNotes // of a trimmed core, else nil
	// system is the operating system that wrote the core, if that is one whose
	// notes are not known.
	system string
}

// foreignABIs names the systems that set EI_OSABI in their cores (gABI chapter
// 4, "ELF Identification"); Linux leaves it 0.
var foreignABIs = map[elf.OSABI]string{
	elf.ELFOSABI_NETBSD: "NetBSD", elf.ELFOSABI_FREEBSD: "FreeBSD", elf.ELFOSABI_OPENBSD: "OpenBSD", elf.ELFOSABI_SOLARIS: "Solaris",
}

// foreignNotes names the systems by the names of their cores' notes, which may
// have a thread's number behind them: "NetBSD-CORE@17" (core(5) of NetBSD).
var foreignNotes = []struct{ note, system string }{
	{"NetBSD-CORE", "NetBSD"}, {"FreeBSD", "FreeBSD"}, {"OpenBSD", "OpenBSD"},
}

// cut says where the file ends too early, for an error; "" if it does not.
func (c *core) cut() string {
	for _, w := range c.p.Warnings {
		if w.Code == "core_cut" {
			return ": " + w.Text
		}
	}
	return ""
}

// openELFCore opens a core as written by the kernel, gdb's gcore, the
// runtime's createdump, qemu-user, or WriteTrimmed.
func openELFCore(data []byte, opt Options) (*Process, error) {
	h, err := objfile.ParseELFHeader(data)
	if err != nil {
		if len(data) >= 20 && data[elf.EI_CLASS] == byte(elf.ELFCLASS32) {
			return nil, &FormatError{int64(elf.EI_CLASS), fmt.Sprintf("a core of a process of 32 bits (%v), of which nothing is read; only those of 64 bits are",
				elf.Machine(binary.LittleEndian.Uint16(data[18:])))}
		}
		return nil, formatError(err)
	}
	cpu := arch.ByMachine(h.Machine)
	if cpu == nil {
		return nil, &FormatError{18, fmt.Sprintf("a core of an unknown CPU (%v)", h.Machine)}
	}
	p := newProcess(cpu.On(arch.Linux), &opt)
	p.core = &coreFile{machine: h.Machine}
	c := &core{data: data, opt: opt, p: p, system: foreignABIs[elf.OSABI(data[elf.EI_OSABI])]}
	progs := c.programs(h)
	c.loads = make([]objfile.Prog, 0, len(progs))
	for _, ph := range progs {
		if ph.Type == elf.PT_LOAD {
			c.loads = append(c.loads, ph)
		}
	}
	c.memory()
	for _, ph := range progs {
		if ph.Type == elf.PT_NOTE {
			c.readNotes(ph)
		}
	}
	if len(p.Threads) == 0 {
		if err := c.empty(h); err != nil {
			return nil, err
		}
	}
	p.core.auxv = c.notes.auxv
	c.images()
	c.permissions()
	return p, nil
}

// empty says why a core without a thread is of no use. It is a warning, and no
// error, if the core has memory at least.
func (c *core) empty(h *objfile.ELFHeader) error {
	switch {
	case c.system != "":
		return &FormatError{int64(h.Phoff), "a core of " + c.system + ", which tells of its threads in notes that are not known; only cores of Linux are"}
	case len(c.p.Memory.segs) == 0:
		return &FormatError{int64(len(c.data)), fmt.Sprintf("a core of %d bytes that has neither a thread nor memory%s", len(c.data), c.cut())}
	}
	c.p.warn("no_threads", int64(h.Phoff), "the core has no NT_PRSTATUS note: it tells of no thread")
	return nil
}

// programs reads the program headers that the file really has.
func (c *core) programs(h *objfile.ELFHeader) []objfile.Prog {
	n := h.Phnum
	if n > c.opt.Limits.Segments {
		c.p.warn("limit", int64(h.Phoff), "the core claims %d segments; only the first %d are read", n, c.opt.Limits.Segments)
		n = c.opt.Limits.Segments
	}
	progs, whole := objfile.ParseProgs(c.data, h.Phoff, n)
	if !whole {
		c.p.warn("core_cut", int64(len(c.data)), "the file ends within its program headers: %d of %d are there", len(progs), h.Phnum)
	}
	c.whole = whole && n == h.Phnum
	return progs
}
