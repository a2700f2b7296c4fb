package loader

import (
	"debug/elf"

	"github.com/seamwalk/seam/arch"
)

// SIGSEGV, and its si_code SEGV_MAPERR: nothing is mapped at the address
// (include/uapi/asm-generic/siginfo.h).
const (
	sigSegv  = 11
	siMapErr = 1
)

// Executable reports whether the process could run code at a. known is false
// where neither the dump nor the headers of an image tell, and exec then too.
//
// It is Memory.Executable, and knows one address more: that of the signal that the
// dump was made for, if it is a SEGV_MAPERR, because nothing was mapped there. For
// example, a program calls a function of a library that it has unloaded. createdump
// lists only what it dumps, so its dumps have nothing else that says so.
func (p *Process) Executable(a arch.Addr) (exec, known bool) {
	if exec, known = p.Memory.Executable(a); known {
		return exec, true
	}
	c := p.Crash
	return false, c != nil && c.HasAddr && c.Address == a && c.Signal == sigSegv && c.Code == siMapErr
}

// Executable reports whether code at a could run, by what the dump says of the
// mapping that holds it; known is false where nothing tells, and exec then too.
//
// Every writer of cores notes the permissions of what it dumps (p_flags). Of what
// is not listed the program headers of the image that lies there have them: gcore
// leaves out code that it can find in a file. A core of the kernel's lists every
// mapping, dumped or not, so what it does not list was not mapped; createdump and
// gcore list only what they dump. Low addresses, and those that only a kernel can
// map, are never executable.
//
// createdump gives all pages that it adds at a time the permissions of the first
// (CrashInfo::InsertMemoryRegion, src/coreclr/debug/createdump/crashinfo.cpp). So
// in a core that lists only what it dumps an image's headers are asked first, and
// the flags of a mapping are not believed close to a mapping with other flags, as
// where the runtime has code and data side by side.
func (m *Memory) Executable(a arch.Addr) (exec, known bool) {
	if m.track != nil && m.piece(a) != nil {
		m.track.add(a, 1) // a trimmed core is to give the same answer
	}
	return m.executable(a)
}

// executable is Executable, and counts as no read.
func (m *Memory) executable(a arch.Addr) (exec, known bool) {
	f := m.fileAt(a)
	if f != nil && m.sparse {
		if exec, known = f.img.executable(a); known {
			return exec, true
		}
	}
	i, mapped := m.mappingAt(a)
	if mapped && m.access {
		flags := elf.ProgFlag(m.mapped[i].flags)
		if m.trimmed && flags == 0 && m.dumped(a) != nil || !m.trimmed && m.sparse && m.blurred(i, a) {
			return false, false
		}
		return flags&elf.PF_X != 0, true
	}
	switch {
	case mapped:
		return false, false
	case f != nil:
		return f.img.executable(a)
	case m.noted.Has(a):
		return false, false
	case a < arch.LowestMapped:
		return false, true
	case a >= userEnd:
		return false, !m.gate.Has(a)
	}
	return false, !m.sparse
}

// blur is how far from where permissions change createdump's flags may be
// wrong, in bytes: it adds what the runtime names, objects of a few pages at most.
const blur = 1 << 16

// blurred reports whether the flags of mapping i may not hold at a: whether a
// mapping of other permissions lies near, outside of images. So near there are no
// more mappings than pages; those of a forged dump may be smaller.
func (m *Memory) blurred(i int, a arch.Addr) bool {
	const most = blur / pageSize
	differs := func(k int) bool {
		return (m.mapped[k].flags^m.mapped[i].flags)&uint32(elf.PF_X) != 0 && m.fileAt(m.mapped[k].Lo) == nil
	}
	for k := i - 1; k >= max(0, i-most) && a-m.mapped[k].Hi < blur; k-- {
		if differs(k) {
			return true
		}
	}
	for k := i + 1; k <= min(i+most, len(m.mapped)-1) && m.mapped[k].Lo-a < blur; k++ {
		if differs(k) {
			return true
		}
	}
	return false
}

// flagsAt returns the permissions of the byte at a, which is at hand, as p_flags
// has them; 0 where it is not known whether it is executable.
func (m *Memory) flagsAt(a arch.Addr) uint32 {
	flags := elf.PF_R // of what came from a file, which was not writable
	if mp, ok := m.mappedAt(a); ok {
		flags = elf.ProgFlag(mp.flags)
	}
	exec, known := m.executable(a)
	switch {
	case exec:
		flags |= elf.PF_X
	case known:
		flags &^= elf.PF_X
	default:
		flags = 0
	}
	return uint32(flags)
}
