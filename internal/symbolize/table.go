package symbolize

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/seamwalk/seam/arch"
)

// A table is the code symbols of one image by address, one an address. It
// holds no names: they are read from the string table when asked for.
type table struct {
	entries []entry
	names   []byte   // the string table
	plain   []string // instead of names, for symbols that are in no string table
	suffix  string   // of every name
	final   bool     // what is not here has no name
}

// An entry is one symbol.
type entry struct {
	at, end arch.LinkAddr // half-open
	name    uint32        // offset in names, or index in plain
	rank    uint8         // lower is better, among symbols at one address
	sized   bool
}

// Numbers of ELF symbols (gABI, chapter 4, "Symbol Table").
const (
	symSize    = 24 // of an Elf64_Sym
	sttNoType  = 0
	sttFunc    = 2
	sttIFunc   = 10
	stbLocal   = 0
	stbWeak    = 2
	shnUndef   = 0
	shnReserve = 0xff00
)

// unsizedReach is how far a symbol without a size reaches in a table that does
// not list every function, .dynsym: what follows it there may be anything. Old
// libraries export _init, a symbol without a size, and stripped code follows.
const unsizedReach = 256

// maxNested bounds how many symbols find looks back over for one that holds an
// address: assembly has a few symbols within another's range.
const maxNested = 32

// parseSymbols indexes an ELF64 symbol table. A complete one has every
// function of the image: a symbol without a size then reaches to the next.
// end is where the image ends. It returns nil when there is no code symbol.
func parseSymbols(syms, strs []byte, complete bool, end arch.LinkAddr) *table {
	n := len(syms) / symSize
	// Code sections are those that have a function. Labels without a type
	// count there only: others name data, or the ends of sections.
	var code [1024]uint64 // bits, by section index
	funcs := 0
	for i := range n {
		s := syms[i*symSize:]
		if t, shndx := s[4]&15, le16(s[6:]); t == sttFunc || t == sttIFunc {
			code[shndx>>6] |= 1 << (shndx & 63)
			funcs++
		}
	}
	if funcs == 0 {
		return nil
	}
	t := &table{entries: make([]entry, 0, funcs), names: strs}
	for i := range n {
		s := syms[i*symSize : (i+1)*symSize]
		name, info, shndx := le32(s), s[4], le16(s[6:])
		at, size := arch.LinkAddr(le64(s[8:])), arch.LinkAddr(le64(s[16:]))
		typ := info & 15
		if shndx == shnUndef || shndx >= shnReserve || name == 0 || uint64(name) >= uint64(len(strs)) ||
			code[shndx>>6]>>(shndx&63)&1 == 0 || at+size < at {
			continue
		}
		var rank uint8
		switch info >> 4 {
		case stbLocal:
			rank = 4
		case stbWeak:
			rank = 2
		}
		switch typ {
		case sttFunc, sttIFunc:
		case sttNoType:
			// $x, $d and the like mark instruction sets on ARM (ELF for the
			// Arm 64-bit Architecture, 5.5.5).
			if strs[name] == '$' || strs[name] == 0 {
				continue
			}
			rank++
		default:
			continue
		}
		t.entries = append(t.entries, entry{at: at, end: at + size, name: name, rank: rank, sized: size != 0})
	}
	reach := arch.LinkAddr(unsizedReach)
	if complete {
		reach = end
	}
	t.finish(reach, end)
	return t
}

// finish sorts the entries, keeps the best at each address and settles how far
// the unsized ones reach: to the next symbol, at most reach bytes or the end of
// the image.
func (t *table) finish(reach, end arch.LinkAddr) {
	t.entries = sortByAddress(t.entries)
	out := t.entries[:0]
	for _, e := range t.entries {
		if len(out) == 0 || out[len(out)-1].at != e.at {
			out = append(out, e)
			continue
		}
		best := &out[len(out)-1]
		far, sized := max(best.end, e.end), best.sized || e.sized
		if t.better(e, *best) {
			*best = e
		}
		best.end, best.sized = far, sized
	}
	// Labels without a size within a function that has one are places in it:
	// assembly marks its loops and unwind points so.
	var covered arch.LinkAddr
	t.entries = out[:0]
	for _, e := range out {
		if e.sized || e.at >= covered {
			t.entries = append(t.entries, e)
		}
		covered = max(covered, e.end)
	}
	for i := range t.entries {
		e := &t.entries[i]
		if e.sized {
			continue
		}
		next := end
		if i+1 < len(t.entries) {
			next = t.entries[i+1].at
		}
		e.end = max(e.at+1, next)
		if e.end-e.at > reach {
			e.end = e.at + reach
		}
	}
}

// sortByAddress sorts entries by address and keeps the order of those at one,
// by digits of 11 bits: comparing takes ten times as long, and a symbol table
// is sorted in every run for the sake of a few dozen names.
func sortByAddress(es []entry) []entry {
	const bits = 11
	var all arch.LinkAddr
	for i := range es {
		all |= es[i].at
	}
	tmp := make([]entry, len(es))
	for shift := 0; shift < 64 && all>>shift != 0; shift += bits {
		var at [1<<bits + 1]int // where the entries of a digit begin
		for i := range es {
			at[es[i].at>>shift&(1<<bits-1)+1]++
		}
		for d := range 1 << bits {
			at[d+1] += at[d]
		}
		for i := range es {
			d := es[i].at >> shift & (1<<bits - 1)
			tmp[at[d]] = es[i]
			at[d]++
		}
		es, tmp = tmp, es
	}
	return es
}

// better reports whether a names their address better than b. Global names
// beat weak ones and weak ones local ones, as in gdb and elfutils; among equals
// the name that people call: malloc, not __libc_malloc.
func (t *table) better(a, b entry) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	x, y := t.bytes(a), t.bytes(b)
	if c := cmp.Compare(underscores(x), underscores(y)); c != 0 {
		return c < 0
	}
	return len(x) < len(y)
}

func underscores(s []byte) (n int) {
	for n < len(s) && s[n] == '_' {
		n++
	}
	return n
}

// find returns the symbol that a lies in: the last one that starts before a
// and reaches over it.
func (t *table) find(a arch.LinkAddr) (entry, bool) {
	i, exact := slices.BinarySearchFunc(t.entries, a, func(e entry, a arch.LinkAddr) int { return cmp.Compare(e.at, a) })
	if !exact {
		i--
	}
	for n := 0; i >= 0 && n < maxNested; i, n = i-1, n+1 {
		if e := t.entries[i]; a < e.end {
			return e, true
		}
	}
	return entry{}, false
}

// maxName bounds a symbol's name. The longest C++ names seen are some 10 kB.
const maxName = 1 << 16

func (t *table) name(e entry) string {
	if t.plain != nil {
		return t.plain[e.name]
	}
	return string(t.bytes(e)) + t.suffix
}

// bytes returns the name as the string table has it, which is not copied: two
// names are compared for each of libc's aliases.
func (t *table) bytes(e entry) []byte {
	if t.plain != nil {
		return []byte(t.plain[e.name])
	}
	b := t.names[e.name:]
	b = b[:min(len(b), maxName)]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return b
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
