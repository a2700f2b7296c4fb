package symbolize

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
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

// unsizedReach is how far a symbol without a size reaches in a table that does
// not list every function, .dynsym: what follows it there may be anything. Old
// libraries export _init, a symbol without a size, and stripped code follows.
const unsizedReach = 256

// maxNested bounds how many symbols find looks back over for one that holds an
// address: assembly has a few symbols within another's range.
const maxNested = 32

// parseSymbols indexes an ELF64 symbol table, with its string table. reach is how
// far a symbol without a size reaches if no other follows: the end of the image in
// a table that has every function of it. end is where the image ends. It returns
// nil when there is no code symbol.
func parseSymbols(syms, strs []byte, reach, end arch.LinkAddr) *table {
	code, funcs := codeSections(syms)
	if funcs == 0 {
		return nil
	}
	t := &table{entries: make([]entry, 0, funcs), names: strs}
	for ; len(syms) >= objfile.SymSize; syms = syms[objfile.SymSize:] {
		s := objfile.ParseSymbol(syms)
		if s.Shndx == elf.SHN_UNDEF || s.Shndx >= elf.SHN_LORESERVE || s.Name == 0 || uint64(s.Name) >= uint64(len(strs)) ||
			code[s.Shndx>>6]>>(s.Shndx&63)&1 == 0 || s.Value+s.Size < s.Value {
			continue
		}
		var rank uint8
		switch s.Bind() {
		case elf.STB_LOCAL:
			rank = 4
		case elf.STB_WEAK:
			rank = 2
		}
		switch s.Type() {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		case elf.STT_NOTYPE:
			// $x, $d and the like mark instruction sets on ARM (ELF for the
			// Arm 64-bit Architecture, 5.5.5).
			if strs[s.Name] == '$' || strs[s.Name] == 0 {
				continue
			}
			rank++
		default:
			continue
		}
		at := arch.LinkAddr(s.Value)
		t.entries = append(t.entries, entry{at: at, end: at + arch.LinkAddr(s.Size), name: s.Name, rank: rank, sized: s.Size != 0})
	}
	t.finish(reach, end)
	return t
}

// codeSections returns the sections that have a function, as bits by their
// index, and how many functions there are. Labels without a type count in such
// sections only: others name data, or the ends of sections.
func codeSections(syms []byte) (code [1024]uint64, funcs int) {
	for ; len(syms) >= objfile.SymSize; syms = syms[objfile.SymSize:] {
		s := objfile.ParseSymbol(syms)
		if t := s.Type(); t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC {
			code[s.Shndx>>6&1023] |= 1 << (s.Shndx & 63)
			funcs++
		}
	}
	return code, funcs
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
// the name that people call: malloc, not __libc_malloc. NativeAOT gives a method
// that the runtime calls two local names, of which the longer has the class.
func (t *table) better(a, b entry) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	x, y := t.bytes(a), t.bytes(b)
	if managed := qualifies(x, y); managed || qualifies(y, x) {
		return managed
	}
	if c := cmp.Compare(underscores(x), underscores(y)); c != 0 {
		return c < 0
	}
	return len(x) < len(y)
}

// qualifies reports whether long is short with a class before it, as NativeAOT's
// compiler mangles a method: S_P_CoreLib_System_Runtime_EH__RhThrowEx.
func qualifies(long, short []byte) bool {
	n := len(long) - len(short) - 2
	return n > 0 && bytes.HasSuffix(long, short) && long[n] == '_' && long[n+1] == '_' &&
		len(short) > 0 && short[0] != '_' && long[0] != '_' && long[n-1] != '_'
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

func (t *table) lookup(a arch.LinkAddr) (name string, start, end arch.LinkAddr, ok bool) {
	e, ok := t.find(a)
	if !ok {
		return "", 0, 0, false
	}
	return t.name(e), e.at, e.end, true
}

func (t *table) last() bool { return t.final }

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
