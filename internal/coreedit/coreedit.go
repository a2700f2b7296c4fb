// Package coreedit changes ELF cores, for tests: it overwrites memory, takes bytes
// out of it so that a reader finds a hole there, and drops notes.
package coreedit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A Core is an ELF core of a 64-bit little-endian process.
type Core struct {
	data  []byte
	progs []prog
	holes bool // progs are no longer those in data
}

// A prog is a program header.
type prog struct {
	typ, flags                            uint32
	off, vaddr, paddr, filesz, memsz, ali uint64
}

const (
	headerSize = 64
	progSize   = 56
)

var le = binary.LittleEndian

// Read reads a core, which may be packed with zstd.
func Read(path string) (*Core, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) >= 4 && le.Uint32(data) == 0xfd2fb528 {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if data, err = r.DecodeAll(data, nil); err != nil {
			return nil, err
		}
	}
	return Parse(data)
}

// Parse takes apart a whole core; it is for sound files only.
func Parse(data []byte) (*Core, error) {
	if len(data) < headerSize || string(data[:4]) != elf.ELFMAG {
		return nil, fmt.Errorf("not an ELF file")
	}
	c := &Core{data: slices.Clone(data)}
	off, n := le.Uint64(data[32:]), uint64(le.Uint16(data[56:]))
	if off > uint64(len(data)) || n*progSize > uint64(len(data))-off {
		return nil, fmt.Errorf("cut within its program headers")
	}
	for i := range n {
		b := data[off+i*progSize:]
		c.progs = append(c.progs, prog{le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint64(b[16:]),
			le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])})
	}
	return c, nil
}

// Clone returns a copy that can be edited by itself.
func (c *Core) Clone() *Core { return &Core{slices.Clone(c.data), slices.Clone(c.progs), c.holes} }

// at returns the bytes from a on that lie in one segment, to be overwritten.
func (c *Core) at(a uint64) []byte {
	for _, p := range c.progs {
		if p.typ == uint32(elf.PT_LOAD) && a-p.vaddr < p.filesz {
			return c.data[p.off+a-p.vaddr : p.off+p.filesz]
		}
	}
	return nil
}

// Word returns the 8 bytes at a.
func (c *Core) Word(a uint64) (uint64, bool) {
	b := c.at(a)
	if len(b) < 8 {
		return 0, false
	}
	return le.Uint64(b), true
}

// Set overwrites the bytes at a; all must be there.
func (c *Core) Set(a uint64, b []byte) error {
	at := c.at(a)
	if len(at) < len(b) {
		return fmt.Errorf("%#x: the core lacks bytes", a)
	}
	copy(at, b)
	return nil
}

// SetWord overwrites the 8 bytes at a.
func (c *Core) SetWord(a, v uint64) error { return c.Set(a, le.AppendUint64(nil, v)) }

// SetFile overwrites the 8 bytes at an offset in the file, if they are there.
// Program headers are written anew by Bytes if there are holes.
func (c *Core) SetFile(off, v uint64) {
	if off < uint64(len(c.data)) && uint64(len(c.data))-off >= 8 {
		le.PutUint64(c.data[off:], v)
	}
}

// SetMachine changes what CPU the core claims to be of.
func (c *Core) SetMachine(m uint16) { le.PutUint16(c.data[18:], m) }

// Find returns the addresses at which memory holds b.
func (c *Core) Find(b []byte) (at []uint64) {
	for _, p := range c.progs {
		if p.typ != uint32(elf.PT_LOAD) {
			continue
		}
		seg := c.data[p.off : p.off+p.filesz]
		for i := 0; i+len(b) <= len(seg); i++ {
			if seg[i] == b[0] && string(seg[i:i+len(b)]) == string(b) {
				at = append(at, p.vaddr+uint64(i))
			}
		}
	}
	return at
}

// Replace overwrites every place in the file that holds the bytes was, notes
// included, and returns how many there are.
func (c *Core) Replace(was, by []byte) (n int) {
	for i := 0; ; n++ {
		k := bytes.Index(c.data[i:], was)
		if k < 0 {
			return n
		}
		i += k + copy(c.data[i+k:], by)
	}
}

// lists reports whether the core lists mappings whose bytes it does not hold,
// as kernels do: what it does not tell of was not mapped, then.
func (c *Core) lists() bool {
	return slices.ContainsFunc(c.progs, func(p prog) bool { return p.typ == uint32(elf.PT_LOAD) && p.memsz > p.filesz })
}

// Hole takes the n bytes at a out of memory. A core that lists all mappings
// goes on to tell that they were mapped.
func (c *Core) Hole(a, n uint64) {
	var out []prog
	lists := c.lists()
	for _, p := range c.progs {
		lo, hi := max(a, p.vaddr), min(a+n, p.vaddr+p.filesz)
		if p.typ != uint32(elf.PT_LOAD) || lo >= hi {
			out = append(out, p)
			continue
		}
		before, after := p, p
		before.filesz, before.memsz = lo-p.vaddr, lo-p.vaddr
		after.off, after.vaddr = p.off+hi-p.vaddr, hi
		after.filesz, after.memsz = p.filesz-(hi-p.vaddr), p.memsz-(hi-p.vaddr)
		hole := p
		hole.vaddr, hole.filesz, hole.memsz = lo, 0, hi-lo
		if !lists {
			hole.memsz = 0
		}
		for _, q := range []prog{before, hole, after} {
			if q.memsz > 0 {
				out = append(out, q)
			}
		}
	}
	c.progs, c.holes = out, true
}

// Notes calls each with every note; one for which it returns false gets a
// type that nobody knows.
func (c *Core) Notes(each func(name string, typ uint32, desc []byte) bool) {
	for _, p := range c.progs {
		if p.typ != uint32(elf.PT_NOTE) {
			continue
		}
		for b := c.data[p.off : p.off+p.filesz]; len(b) >= 12; {
			name, desc := int(le.Uint32(b)), int(le.Uint32(b[4:]))
			at := 12 + (name+3)&^3
			end := at + (desc+3)&^3
			if end > len(b) {
				break
			}
			if !each(string(b[12:12+max(name-1, 0)]), le.Uint32(b[8:]), b[at:at+desc]) {
				le.PutUint32(b[8:], 0x6e6f6e65)
			}
			b = b[end:]
		}
	}
}

// Bytes returns the core as a file. One with holes has its program headers at
// the end.
func (c *Core) Bytes() []byte {
	if !c.holes {
		return slices.Clone(c.data)
	}
	head, progs := c.headers()
	return slices.Concat(head, c.data[headerSize:], progs)
}

// headers returns the file's header, and its program headers, which lie
// behind all that the file had.
func (c *Core) headers() (head, progs []byte) {
	head = slices.Clone(c.data[:headerSize])
	le.PutUint64(head[32:], uint64(len(c.data)))
	le.PutUint16(head[56:], uint16(len(c.progs)))
	progs = make([]byte, 0, len(c.progs)*progSize)
	for _, p := range c.progs {
		progs = le.AppendUint32(progs, p.typ)
		progs = le.AppendUint32(progs, p.flags)
		for _, v := range []uint64{p.off, p.vaddr, p.paddr, p.filesz, p.memsz, p.ali} {
			progs = le.AppendUint64(progs, v)
		}
	}
	return head, progs
}

// WriteHoles makes of f, which Bytes of the core without holes were written to,
// the file with them. Unlike Bytes it costs no more than the headers.
func (c *Core) WriteHoles(f *os.File) error {
	head, progs := c.headers()
	_, err := f.WriteAt(head, 0)
	_, err2 := f.WriteAt(progs, int64(len(c.data)))
	return errors.Join(err, err2)
}

// Holes returns a copy of c whose memory is shared with it: only Hole may be
// called on it.
func (c *Core) Holes() *Core { return &Core{c.data, slices.Clone(c.progs), c.holes} }
