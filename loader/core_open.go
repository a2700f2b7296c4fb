package loader

import (
	"cmp"
	"container/heap"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

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
	data  []byte
	opt   Options
	p     *Process
	loads []objfile.Prog
	notes coreNotes
	noted uint64     // bytes of notes read
	kept  *keptNotes // of a trimmed core, else nil
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
		return nil, formatError(err)
	}
	p := &Process{OS: "linux", Arch: arch.ByMachine(h.Machine), Memory: &Memory{held: opt.held}, held: opt.held}
	p.held.has(p.Memory)
	p.held.warn = func(text string) { p.warnLate("file_lost", "%s", text) }
	if p.Arch == nil {
		return nil, &FormatError{18, fmt.Sprintf("a core of an unknown CPU (%v)", h.Machine)}
	}
	p.core = &coreFile{machine: h.Machine}
	c := &core{data: data, opt: opt, p: p, system: foreignABIs[elf.OSABI(data[elf.EI_OSABI])]}
	progs, whole := c.programs(h)
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
		switch {
		case c.system != "":
			return nil, &FormatError{int64(h.Phoff), "a core of " + c.system + ", which tells of its threads in notes that are not known; only cores of Linux are"}
		case len(p.Memory.segs) == 0:
			return nil, &FormatError{int64(len(data)), fmt.Sprintf("a core of %d bytes that has neither a thread nor memory%s", len(data), c.cut())}
		}
		p.warn("no_threads", int64(h.Phoff), "the core has no NT_PRSTATUS note: it tells of no thread")
	}
	p.core.auxv = c.notes.auxv
	c.images()
	c.permissions(whole)
	if opt.Track {
		// Not before: what opening learns of the images a trimmed core tells in
		// notes, and the page with the program's path often has the
		// environment's strings too.
		p.Memory.remember()
	}
	return p, nil
}

// programs reads the program headers that the file really has, and reports
// whether these are all.
func (c *core) programs(h *objfile.ELFHeader) (progs []objfile.Prog, all bool) {
	n := h.Phnum
	if n > c.opt.Limits.Segments {
		c.p.warn("limit", int64(h.Phoff), "the core claims %d segments; only the first %d are read", n, c.opt.Limits.Segments)
		n = c.opt.Limits.Segments
	}
	progs, whole := objfile.ParseProgs(c.data, h.Phoff, n)
	if !whole {
		c.p.warn("core_cut", int64(len(c.data)), "the file ends within its program headers: %d of %d are there", len(progs), h.Phnum)
	}
	return progs, whole && n == h.Phnum
}

// memory makes the memory of the core's segments.
func (c *core) memory() {
	m := c.p.Memory
	m.sparse = true
	size := uint64(len(c.data))
	list := make([]extent, 0, len(c.loads))
	m.mapped = make([]mapping, 0, len(c.loads))
	var cut, lost uint64
	for _, ph := range c.loads {
		if ph.Memsz > ph.Filesz {
			// The kernel lists a mapping whole and says with p_filesz how much
			// of it follows; the rest was not dumped, and is not zero.
			m.sparse = false
		}
		mem := max(ph.Memsz, ph.Filesz)
		if ph.Vaddr+mem < ph.Vaddr {
			c.p.warn("segment_bad", int64(ph.At), "a segment at %#x of %#x bytes goes past the end of the address space", ph.Vaddr, mem)
			continue
		}
		if mem > 0 {
			lo := arch.Addr(ph.Vaddr)
			m.mapped = append(m.mapped, mapping{arch.Span{Lo: lo, Hi: lo + arch.Addr(mem)}, uint32(ph.Flags)})
		}
		n := ph.Filesz
		if have := size - min(ph.Off, size); have < n {
			cut++
			lost += n - have
			n = have
		}
		if n > 0 {
			list = append(list, extent{arch.Addr(ph.Vaddr), ph.Off, n})
		}
	}
	if cut > 0 {
		c.p.warn("core_cut", int64(size), "the file ends before its segments do: %d of %d segments lack %d bytes", cut, len(c.loads), lost)
	}
	slices.SortStableFunc(m.mapped, func(a, b mapping) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := 1; i < len(m.mapped); i++ {
		// Only the first of two overlapping answers for what it covers.
		m.mapped[i].Lo = max(m.mapped[i].Lo, min(m.mapped[i-1].Hi, m.mapped[i].Hi))
		m.mapped[i].Hi = max(m.mapped[i].Hi, m.mapped[i-1].Hi)
	}
	list = arrange(list)
	m.segs = make([]segment, len(list))
	for i, e := range list {
		m.segs[i] = segment{e.lo, c.data[e.off : e.off+e.n : e.off+e.n]}
	}
}

// An extent is where the file has the bytes of a piece of memory.
type extent struct {
	lo     arch.Addr
	off, n uint64
}

func (e *extent) hi() arch.Addr { return e.lo + arch.Addr(e.n) }

// arrange sorts extents by address and cuts what overlaps: of two that hold a
// byte, the one that comes first in list keeps it. Neighbours in memory whose
// bytes are neighbours in the file too become one, which shortens the list:
// the kernel splits a stack from its guard, and createdump every mapping by
// its permissions.
func arrange(list []extent) []extent {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(list[i].lo, list[j].lo), cmp.Compare(i, j))
	})
	out := make([]extent, 0, len(list))
	put := func(e extent) {
		if k := len(out) - 1; k >= 0 && out[k].hi() == e.lo && out[k].off+out[k].n == e.off {
			out[k].n += e.n
			return
		}
		out = append(out, e)
	}
	// A sweep over the begins and ends; the heap has the extents that hold
	// the current address, the first of the file on top.
	var active intHeap
	at := arch.Addr(0)
	sweep := func(until arch.Addr) {
		for len(active) > 0 && at < until {
			e := &list[active[0]]
			if e.hi() <= at {
				heap.Pop(&active)
				continue
			}
			hi := min(e.hi(), until)
			put(extent{at, e.off + uint64(at-e.lo), uint64(hi - at)})
			at = hi
		}
	}
	for _, i := range order {
		sweep(list[i].lo)
		at = list[i].lo
		heap.Push(&active, i)
	}
	sweep(^arch.Addr(0))
	return out
}

// An intHeap has its smallest number first.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any          { n := len(*h) - 1; x := (*h)[n]; *h = (*h)[:n]; return x }
