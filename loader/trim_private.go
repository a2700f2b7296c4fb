package loader

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
)

// A private knows the texts that a process was started with, its arguments and
// its environment, and takes them out of the pages that a trimmed core holds.
// Only what a walk has read stays, which is hardly ever a word. The texts lie in
// the stack's last page, and again in heaps: CoreCLR keeps the environment as
// UTF-16 (src/coreclr/pal/src/misc/environ.cpp), in a page with objects that
// every walk needs.
type private struct {
	mem     *Memory // untracked
	read    *pageSet
	block   arch.Span // what the kernel put onto the stack, but for the pointers
	first   [1 << 16 / 64]uint64
	texts   map[uint32][][]byte // by the first four bytes; first has a bit for the first two
	longest int
	count   int
	work    int // bytes that may still be compared
}

const (
	// maxBlock bounds the arguments and the environment: the kernel allows
	// 6 MB (fs/exec.c, bprm_stack_limits).
	maxBlock = 8 << 20
	// minText is how long a text must be to be looked for: values as "1" and
	// "true" are everywhere and tell nothing.
	minText = 6
	// maxText bounds how far beyond a page the rest of a text is looked for.
	maxText = 1 << 18
	// maxTexts and maxCompared bound the search where a broken dump has very
	// many texts, or many alike.
	maxTexts    = 1 << 16
	maxCompared = 1 << 28
)

// newPrivate reads what the process was started with. The kernel puts, from
// lower to higher addresses, AT_RANDOM's bytes and AT_PLATFORM's text, the
// arguments, the environment and the path of the program at the stack's end
// (fs/binfmt_elf.c, create_elf_tables; fs/exec.c).
func newPrivate(m *Memory, auxv map[uint64]uint64) *private {
	p := &private{mem: m.Untracked(), read: m.track, texts: map[uint32][][]byte{}, work: maxCompared}
	for _, k := range []uint64{atPlatform, atRandom, atExecFn} {
		if a := arch.Addr(auxv[k]); a != 0 && (p.block.Lo == 0 || a < p.block.Lo) {
			p.block.Lo = a
		}
	}
	p.block.Hi = p.block.Lo
	for p.block.Hi-p.block.Lo < maxBlock {
		mp, ok := m.mappedAt(p.block.Hi)
		if !ok {
			break
		}
		p.block.Hi = min(mp.Hi, p.block.Lo+maxBlock)
	}
	b := make([]byte, m.have(p.block.Lo, int(p.block.Hi-p.block.Lo)))
	p.mem.Read(p.block.Lo, b)
	for len(b) > 0 {
		text, rest, _ := bytes.Cut(b, []byte{0})
		b = rest
		p.add(text)
		if _, value, ok := bytes.Cut(text, []byte{'='}); ok {
			p.add(value)
		}
		// The links of glibc's lists overwrite the first words of what is freed.
		p.add(text[min(8, len(text)):])
		p.add(text[min(16, len(text)):])
	}
	return p
}

// add has a text looked for, as it is and as UTF-16.
func (p *private) add(text []byte) {
	if len(text) < minText {
		return
	}
	if p.count++; p.count > maxTexts {
		p.work = 0
		return
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune(string(text))) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for _, t := range [][]byte{text, wide} {
		two := binary.LittleEndian.Uint16(t)
		p.first[two>>6] |= 1 << (two & 63)
		four := binary.LittleEndian.Uint32(t)
		p.texts[four] = append(p.texts[four], t)
		p.longest = min(max(p.longest, len(t)), maxText)
	}
}

// clean returns a copy of the run r, which is there in whole, without what is
// private and was not read.
func (p *private) clean(r arch.Span) []byte {
	// A text may begin in front of the run, or end behind it.
	around := p.around(r)
	b := make([]byte, around.Hi-around.Lo)
	p.mem.Read(around.Lo, b)
	// Found first, blanked then: one text can be part of another.
	blank := []arch.Span{p.block}
	found := func(at, n int) {
		lo := around.Lo + arch.Addr(at)
		blank = append(blank, arch.Span{Lo: lo, Hi: lo + arch.Addr(n)})
	}
	variables(b, found)
	if !p.find(b, found) {
		blank = []arch.Span{r} // when in doubt, all
	}
	b = b[r.Lo-around.Lo : r.Hi-around.Lo]
	for _, s := range blank {
		for a := max(s.Lo, r.Lo); a < min(s.Hi, r.Hi); {
			end := min((a|7)+1, s.Hi, r.Hi)
			if !p.read.has(a) {
				clear(b[a-r.Lo : end-r.Lo])
			}
			a = end
		}
	}
	return b
}

// around returns r with as much around it as a text can be long, as far as the
// dump has it.
func (p *private) around(r arch.Span) arch.Span {
	out := r
	for r.Lo-out.Lo < arch.Addr(p.longest) && out.Lo >= pageSize {
		lo := (out.Lo - 1) &^ (pageSize - 1)
		if n := int(out.Lo - lo); p.mem.have(lo, n) < n {
			break
		}
		out.Lo = lo
	}
	out.Hi += arch.Addr(p.mem.have(r.Hi, p.longest))
	return out
}

// find calls f for each place in b where a text lies; false if that would take
// too long.
func (p *private) find(b []byte, f func(at, n int)) bool {
	for i := 0; i+4 <= len(b); i++ {
		if p.work <= 0 {
			return false
		}
		two := binary.LittleEndian.Uint16(b[i:])
		if p.first[two>>6]>>(two&63)&1 == 0 {
			continue
		}
		for _, t := range p.texts[binary.LittleEndian.Uint32(b[i:])] {
			p.work -= len(t)
			if bytes.HasPrefix(b[i:], t) {
				f(i, len(t))
			}
		}
	}
	return true
}

// variables calls f for each place in b that looks like a variable of an
// environment, NAME=value. The dump may lack the block with the texts, as a mini
// dump does, and a process can add to its environment.
func variables(b []byte, f func(at, n int)) {
	for i := 0; i < len(b); i++ {
		k := bytes.IndexByte(b[i:], '=')
		if k < 0 {
			return
		}
		i += k
		for width := 1; width <= 2; width++ {
			if lo, hi := variable(b, i, width); lo < hi {
				f(lo, hi-lo)
				i = hi - 1 // what is behind belongs to the value
				break
			}
		}
	}
}

// variable returns where the variable begins and ends whose "=" is at i, if
// its name has three capital letters at least: others are everywhere in code.
// Its characters have one byte (UTF-8) or two (UTF-16).
func variable(b []byte, i, width int) (lo, hi int) {
	unit := func(at int) (c rune) {
		switch {
		case at < 0 || at+width > len(b):
			return 0
		case width == 2:
			return rune(binary.LittleEndian.Uint16(b[at:]))
		}
		return rune(b[at])
	}
	for lo = i; ; lo -= width {
		if c := unit(lo - width); !(c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			break
		}
	}
	if i-lo < 3*width || unit(i) != '=' {
		return 0, 0
	}
	for hi = i + width; unit(hi) >= ' '; hi += width {
	}
	return lo, hi
}
