package memtest

import (
	"debug/elf"
	"encoding/binary"
)

// A Core is what an ELF core of a 64-bit little-endian process is made of.
type Core struct {
	Machine elf.Machine // 0: x86-64
	Loads   []Load
	Notes   []byte // of one PT_NOTE segment; see Note
	// ManyHeaders: the number of program headers is in section header 0, as it is
	// in cores that have 65,535 of them or more.
	ManyHeaders bool
}

// A Load is a segment of memory.
type Load struct {
	Addr  uint64
	Data  []byte
	Size  uint64 // p_memsz, in bytes; less than Data has: as long as Data
	Flags elf.ProgFlag
}

// Sizes of an ELF file's structures (gABI chapters 4 and 5), in bytes, and the
// number of program headers that stands for more than fit.
const (
	fileHeaderSize    = 64
	progHeaderSize    = 56
	sectionHeaderSize = 64
	manyHeaders       = 0xffff
)

var le = binary.LittleEndian

// Note adds a note.
func (c *Core) Note(name string, typ uint32, desc []byte) {
	c.Notes = le.AppendUint32(c.Notes, uint32(len(name)+1))
	c.Notes = le.AppendUint32(c.Notes, uint32(len(desc)))
	c.Notes = le.AppendUint32(c.Notes, typ)
	for _, b := range [][]byte{append([]byte(name), 0), desc} {
		c.Notes = append(c.Notes, b...)
		c.Notes = append(c.Notes, make([]byte, -len(b)&3)...)
	}
}

// Thread adds the NT_PRSTATUS note of a thread of x86-64 that stands at pc: pr_pid
// lies at 32, rip at 240, rsp at 264.
func (c *Core) Thread(tid uint32, pc, sp uint64) {
	d := make([]byte, 336)
	le.PutUint32(d[32:], tid)
	le.PutUint64(d[240:], pc)
	le.PutUint64(d[264:], sp)
	c.Note("CORE", uint32(elf.NT_PRSTATUS), d)
}

// Bytes returns the file: its header, the program headers, notes, memory.
func (c *Core) Bytes() []byte {
	machine := c.Machine
	if machine == 0 {
		machine = elf.EM_X86_64
	}
	n := 1 + len(c.Loads)
	off := uint64(fileHeaderSize + n*progHeaderSize)
	sections, count, inSection := uint64(0), n, 0
	if c.ManyHeaders {
		sections, count, inSection = off, manyHeaders, 1
		off += sectionHeaderSize
	}
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	b = le.AppendUint16(b, uint16(elf.ET_CORE))
	b = le.AppendUint16(b, uint16(machine))
	b = le.AppendUint32(b, uint32(elf.EV_CURRENT))
	for _, v := range []uint64{0, fileHeaderSize, sections} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, 0)
	for _, v := range []int{fileHeaderSize, progHeaderSize, count, sectionHeaderSize, inSection, 0} {
		b = le.AppendUint16(b, uint16(v))
	}
	b = appendHeader(b, elf.PT_NOTE, 0, off, 0, uint64(len(c.Notes)), 0)
	at := off + uint64(len(c.Notes))
	for _, l := range c.Loads {
		b = appendHeader(b, elf.PT_LOAD, l.Flags, at, l.Addr, uint64(len(l.Data)), max(l.Size, uint64(len(l.Data))))
		at += uint64(len(l.Data))
	}
	if c.ManyHeaders {
		s := make([]byte, sectionHeaderSize)
		le.PutUint32(s[44:], uint32(n)) // sh_info
		b = append(b, s...)
	}
	b = append(b, c.Notes...)
	for _, l := range c.Loads {
		b = append(b, l.Data...)
	}
	return b
}

// appendHeader appends a program header. Offset, address and sizes are in bytes.
func appendHeader(b []byte, typ elf.ProgType, flags elf.ProgFlag, off, addr, inFile, inMemory uint64) []byte {
	b = le.AppendUint32(b, uint32(typ))
	b = le.AppendUint32(b, uint32(flags))
	for _, v := range []uint64{off, addr, 0, inFile, inMemory, 1} {
		b = le.AppendUint64(b, v)
	}
	return b
}
