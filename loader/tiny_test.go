package loader

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// The tiny format is a third kind of dump, which only tests read. It is here to
// show what a format takes: this file, and the line in init. It has what a minidump
// has, lists of threads, ranges of memory and modules, each with its number first
// (4 bytes), behind "TINYDUMP" and the CPU as ELF numbers it (4 bytes):
//
//	thread: TID, number of registers (4 bytes each), then a register's number in
//	        package arch and its value (8 bytes each)
//	range:  address, size, p_flags, offset in the file (8 bytes each)
//	module: base, size (8 bytes each), timestamp, size in the PE headers (4 bytes
//	        each), path, build-id, each with its length first (4 bytes)
func init() { formats = append(formats, format{"tiny", isTiny, openTiny}) }

const tinyMagic = "TINYDUMP"

func isTiny(head []byte) bool { return strings.HasPrefix(string(head[:min(8, len(head))]), tinyMagic) }

// openTiny fills a process from a tiny dump.
func openTiny(data []byte, opt Options) (*Process, error) {
	r := bin.New("tiny dump", data)
	r.Bytes(len(tinyMagic))
	machine := elf.Machine(r.U32())
	cpu := arch.ByMachine(machine)
	if cpu == nil {
		return nil, &FormatError{8, fmt.Sprintf("a dump of an unknown CPU (%v)", machine)}
	}
	p := newProcess(cpu.On(arch.Linux), &opt)
	for range min(r.Count(uint64(r.U32()), 8), opt.Limits.Threads) {
		t := Thread{ID: r.U32()}
		for range r.Count(uint64(r.U32()), 16) {
			reg := r.U64()
			t.Regs.Set(arch.Reg(reg), r.U64())
		}
		p.Threads = append(p.Threads, t)
	}
	openTinyMemory(p, &r, data)
	images := newImageList(p, &opt)
	for range r.Count(uint64(r.U32()), 32) {
		d := module{base: arch.Addr(r.U64()), size: r.U64(), id: ImageID{Timestamp: r.U32(), Size: r.U32()}}
		d.path, d.id.BuildID = tinyText(&r), tinyText(&r)
		images.module(d)
	}
	images.finish()
	if r.Err() != nil {
		return nil, &FormatError{int64(len(data)), "a tiny dump that ends too early"}
	}
	return p, nil
}

// openTinyMemory reads the ranges of memory.
func openTinyMemory(p *Process, r *bin.Reader, data []byte) {
	var pieces []extent
	var mapped []mapping
	for range r.Count(uint64(r.U32()), 32) {
		lo, n, flags, off := arch.Addr(r.U64()), r.U64(), uint32(r.U64()), r.U64()
		if bin.Slice(data, off, n) == nil || lo+arch.Addr(n) < lo {
			p.warn("segment_bad", int64(off), "a range of %#x bytes does not lie in the file", n)
			continue
		}
		pieces = append(pieces, extent{lo, off, n})
		mapped = append(mapped, mapping{arch.Span{Lo: lo, Hi: lo + arch.Addr(n)}, flags})
	}
	m := p.Memory
	m.lists(mapped)
	m.holds(data, pieces)
	m.sparse, m.access = true, true
}

func tinyText(r *bin.Reader) string { return string(r.Bytes(r.Count(uint64(r.U32()), 1))) }

// A tinyDump is what a tiny dump is made of.
type tinyDump struct {
	machine elf.Machine
	threads []Thread
	ranges  []tinyRange
	modules []module
}

type tinyRange struct {
	lo    arch.Addr
	data  []byte
	flags elf.ProgFlag
}

// bytes returns the file.
func (d *tinyDump) bytes() []byte {
	le := binary.LittleEndian
	head := func(at uint64) []byte { // at: where the bytes of memory begin
		b := le.AppendUint32([]byte(tinyMagic), uint32(d.machine))
		b = le.AppendUint32(b, uint32(len(d.threads)))
		for _, t := range d.threads {
			var regs []byte
			n := 0
			for k := range arch.MaxRegs {
				if v, known := t.Regs.Get(arch.Reg(k)); known {
					regs = le.AppendUint64(le.AppendUint64(regs, uint64(k)), v)
					n++
				}
			}
			b = append(le.AppendUint32(le.AppendUint32(b, t.ID), uint32(n)), regs...)
		}
		b = le.AppendUint32(b, uint32(len(d.ranges)))
		for _, r := range d.ranges {
			for _, v := range []uint64{uint64(r.lo), uint64(len(r.data)), uint64(r.flags), at} {
				b = le.AppendUint64(b, v)
			}
			at += uint64(len(r.data))
		}
		b = le.AppendUint32(b, uint32(len(d.modules)))
		for _, m := range d.modules {
			b = le.AppendUint64(le.AppendUint64(b, uint64(m.base)), m.size)
			b = le.AppendUint32(le.AppendUint32(b, m.id.Timestamp), m.id.Size)
			b = putString(putString(b, m.path), m.id.BuildID)
		}
		return b
	}
	b := head(uint64(len(head(0))))
	for _, r := range d.ranges {
		b = append(b, r.data...)
	}
	return b
}

// asTiny returns a tiny dump of what the process has: every byte of memory, and
// as modules what a list of modules would have, which are neither files that are
// mapped to be read nor the image that the kernel maps.
func asTiny(p *Process) []byte {
	d := tinyDump{machine: p.Arch.Machine, threads: p.Threads}
	for _, s := range p.Memory.segs {
		for len(s.data) > 0 { // a segment can have several mappings of different permissions
			r := tinyRange{lo: s.lo, data: s.data, flags: elf.PF_R}
			if mp, ok := p.Memory.mappedAt(s.lo); ok {
				r.data, r.flags = s.data[:min(uint64(len(s.data)), uint64(mp.Hi-s.lo))], elf.ProgFlag(mp.flags)
			}
			d.ranges = append(d.ranges, r)
			s.lo, s.data = s.lo+arch.Addr(len(r.data)), s.data[len(r.data):]
		}
	}
	for _, m := range p.Images {
		if m.Flat || m.src == nil || m.copy {
			continue
		}
		d.modules = append(d.modules, module{base: m.span.Lo, size: uint64(m.span.Hi - m.span.Lo), path: m.Path, id: m.ID})
	}
	return d.bytes()
}

// AsTiny is asTiny, for tests that see this package as its users do.
var AsTiny = asTiny
