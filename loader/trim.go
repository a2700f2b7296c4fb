package loader

import (
	"bufio"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// Kept is what a trimmed core keeps besides pages of memory, because it was
// read from files at places that are not mapped.
type Kept struct {
	Symbols  map[*Image][]Symbol          // the symbols that named a frame
	Sections map[*Image]map[string][]byte // by name, as Section gave them
}

// TrimStats says what became of the pages that were read.
type TrimStats struct {
	Touched int   // pages of 4 KB that were read
	Absent  int   // of these, how many are missing in whole or in part
	Runs    int   // pieces of memory written
	Bytes   int64 // size of the trimmed core
}

// A coreFile is what a trim copies from the core it was opened from.
type coreFile struct {
	machine elf.Machine
	notes   [][]byte // the PT_NOTE segments
	auxv    map[uint64]uint64
}

// WriteTrimmed writes an ELF core that holds just the pages that were read so
// far (so the process must have been opened with Options.Track), whether they
// came from the dump or from image files, and all notes, so that opening it
// with no files gives the same answers. People attach such cores to bug reports,
// so what the process was started with is left out: the command line in
// NT_PRPSINFO, and the texts of its arguments and environment wherever they
// lie in those pages, as far as nothing read them.
func (p *Process) WriteTrimmed(w io.Writer, keep Kept) (TrimStats, error) {
	if p.core == nil {
		return TrimStats{}, errors.New("only an ELF core can be trimmed")
	}
	if p.Memory.track == nil {
		return TrimStats{}, errors.New("the dump was not opened with Options.Track, so what was read is not known")
	}
	touched := p.Memory.Touched()
	var st TrimStats
	for _, s := range touched {
		st.Touched += int((s.Hi - s.Lo) / pageSize)
	}
	// Writing is no reading: nothing below may be tracked.
	t := trimmer{p: p, m: p.Memory, keep: keep}
	t.collect(touched, &st)
	t.makeNotes()
	out := bufio.NewWriterSize(w, 1<<16)
	n, err := t.write(out)
	if err == nil {
		err = out.Flush()
	}
	st.Runs, st.Bytes = len(t.runs), n
	return st, err
}

// A trimmer collects what a trimmed core will hold.
type trimmer struct {
	p     *Process
	m     *Memory
	keep  Kept
	runs  []arch.Span // memory with bytes, sorted
	bare  []mapping   // mapped ranges without
	notes []byte
}

// collect finds the runs of touched memory that are at hand.
func (t *trimmer) collect(touched []arch.Span, st *TrimStats) {
	for _, s := range touched {
		for page := s.Lo; page < s.Hi; page += pageSize {
			if !t.collectPage(page) {
				st.Absent++
			}
		}
	}
	if t.m.sparse {
		return
	}
	// The core lists mappings whose bytes it lacks. The trimmed core has to list
	// them too, so that what was not mapped can be told from what was not dumped.
	for _, mp := range t.m.mapped {
		t.collectBare(mp)
	}
}

// collectPage adds what is at hand of a page to the runs, and reports whether
// that is all of it. A page can be there in part: a file ends in it, or it has a
// table in a page of which nothing else comes from the file.
func (t *trimmer) collectPage(page arch.Addr) (whole bool) {
	whole = true
	for a, end := page, page+pageSize; a < end; {
		b := t.m.piece(a)
		if len(b) == 0 {
			whole = false
			a++
			continue
		}
		n := arch.Addr(min(uint64(len(b)), uint64(end-a)))
		if k := len(t.runs); k > 0 && t.runs[k-1].Hi == a && t.m.flagsAt(a-1) == t.m.flagsAt(a) {
			t.runs[k-1].Hi += n
		} else {
			t.runs = append(t.runs, arch.Span{Lo: a, Hi: a + n})
		}
		a += n
	}
	return whole
}

// collectBare adds what no run holds of a mapping.
func (t *trimmer) collectBare(mp mapping) {
	parts := []fileMap{{Span: mp.Span}}
	i, _ := slices.BinarySearchFunc(t.runs, mp.Lo, func(r arch.Span, a arch.Addr) int { return cmp.Compare(r.Hi, a) })
	for ; i < len(t.runs) && t.runs[i].Lo < mp.Hi && len(parts) > 0; i++ {
		parts = append(parts[:len(parts)-1], without(parts[len(parts)-1:], t.runs[i])...)
	}
	for _, q := range parts {
		t.bare = append(t.bare, mapping{q.Span, mp.flags})
	}
}

// write writes the core: headers, notes, and pages without what is private.
func (t *trimmer) write(w io.Writer) (int64, error) {
	head, gap, size := t.headers()
	for _, b := range [][]byte{head, t.notes, make([]byte, gap)} {
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
	}
	start := newPrivate(t.m, t.p.core.auxv)
	for _, r := range t.runs {
		if _, err := w.Write(start.clean(r)); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// headers returns the ELF header and the program headers, how many bytes lie
// between the notes, which follow, and the first page, and the size of the file.
func (t *trimmer) headers() (b []byte, gap uint64, size int64) {
	phnum := 1 + len(t.runs) + len(t.bare)
	off := uint64(objfile.ELFHeaderSize + phnum*objfile.ProgSize)
	if phnum >= objfile.PNXNum {
		off += objfile.SectionSize
	}
	b = t.elfHeader(phnum)
	prog := func(typ elf.ProgType, flags uint32, off, addr, filesz, memsz, align uint64) {
		b = putProg(b, objfile.Prog{Type: typ, Flags: elf.ProgFlag(flags), Off: off, Vaddr: addr, Filesz: filesz, Memsz: memsz}, align)
	}
	prog(elf.PT_NOTE, 0, off, 0, uint64(len(t.notes)), 0, 4)
	at := off + uint64(len(t.notes))
	gap = -at & (pageSize - 1)
	at += gap
	for _, r := range t.runs {
		n := uint64(r.Hi - r.Lo)
		prog(elf.PT_LOAD, t.m.flagsAt(r.Lo), at, uint64(r.Lo), n, n, pageSize)
		at += n
	}
	for _, m := range t.bare {
		prog(elf.PT_LOAD, m.flags, at, uint64(m.Lo), 0, uint64(m.Hi-m.Lo), pageSize)
	}
	if phnum >= objfile.PNXNum {
		b = append(b, countSection(phnum)...)
	}
	return b, gap, int64(at)
}

// elfHeader returns the ELF header of a core with phnum program headers. Where
// these are too many for e_phnum, section header 0 behind them has the number.
func (t *trimmer) elfHeader(phnum int) []byte {
	le := binary.LittleEndian
	shoff, shnum := uint64(0), 0
	if phnum >= objfile.PNXNum {
		shoff, shnum = uint64(objfile.ELFHeaderSize+phnum*objfile.ProgSize), 1
	}
	h := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT))
	h = append(h, make([]byte, 16-len(h))...)
	h = le.AppendUint16(h, uint16(elf.ET_CORE))
	h = le.AppendUint16(h, uint16(t.p.core.machine))
	h = le.AppendUint32(h, uint32(elf.EV_CURRENT))
	for _, v := range []uint64{0, objfile.ELFHeaderSize, shoff} {
		h = le.AppendUint64(h, v)
	}
	h = le.AppendUint32(h, 0)
	for _, v := range []int{objfile.ELFHeaderSize, objfile.ProgSize, min(phnum, objfile.PNXNum), objfile.SectionSize, shnum, 0} {
		h = le.AppendUint16(h, uint16(v))
	}
	return h
}

// countSection returns a section header 0, whose sh_info, at 44, is the number of
// segments.
func countSection(phnum int) []byte {
	s := make([]byte, objfile.SectionSize)
	binary.LittleEndian.PutUint32(s[44:], uint32(phnum))
	return s
}
