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
			end := page + pageSize
			whole := true
			for a := page; a < end; {
				b := t.m.piece(a)
				if len(b) == 0 {
					// A page can be there in part: a file that ends in it, or
					// a table in a page of which nothing else is served.
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
			if !whole {
				st.Absent++
			}
		}
	}
	if t.m.sparse {
		return
	}
	// The core tells of mappings whose bytes it lacks; so must the trimmed one,
	// or it could not tell an unmapped address from one that was not dumped.
	for _, mp := range t.m.mapped {
		parts := []fileMap{{Span: mp.Span}}
		i, _ := slices.BinarySearchFunc(t.runs, mp.Lo, func(r arch.Span, a arch.Addr) int { return cmp.Compare(r.Hi, a) })
		for ; i < len(t.runs) && t.runs[i].Lo < mp.Hi; i++ {
			parts = append(parts[:len(parts)-1], without(parts[len(parts)-1:], t.runs[i])...)
			if len(parts) == 0 {
				break
			}
		}
		for _, q := range parts {
			t.bare = append(t.bare, mapping{q.Span, mp.flags})
		}
	}
}

// makeNotes copies the core's notes and adds ours.
func (t *trimmer) makeNotes() {
	for _, seg := range t.p.core.notes {
		objfile.EachNote(seg, 0, func(n objfile.Note) bool {
			desc := n.Desc
			switch {
			case n.Name == seamNote, n.Name == "LINUX" && n.Type != ntARMTLS, n.Name == "CORE" && n.Type == ntFPRegs:
				// Vector registers have pieces of texts that were copied.
				return true
			case n.Name == "CORE" && n.Type == ntPRPSInfo && len(desc) > 56:
				desc = slices.Clone(desc)
				clear(desc[56:]) // pr_psargs
			}
			t.note(n.Name, n.Type, desc)
			return true
		})
	}
	if t.m.access {
		t.note(seamNote, keptAccess, nil)
	}
	le := binary.LittleEndian
	if h := t.p.RuntimeHint; h != 0 {
		t.note(seamNote, keptHint, le.AppendUint64(nil, uint64(h)))
	}
	for _, m := range t.p.Images {
		t.note(seamNote, keptImageRec, putImage(m))
		if b := putHeaders(m); len(b) > 0 {
			t.note(seamNote, keptHeaders, append(keptBase(m), b...))
		}
		t.imageNotes(m)
	}
}

// imageNotes writes what is kept of one image.
func (t *trimmer) imageNotes(m *Image) {
	le := binary.LittleEndian
	syms := t.keep.Symbols[m]
	if len(syms) == 0 {
		syms = m.KeptSymbols()
	}
	if len(syms) > 0 {
		b := keptBase(m)
		for _, s := range syms {
			b = putString(le.AppendUint64(le.AppendUint64(b, uint64(s.At)), s.Size), s.Name)
		}
		t.note(seamNote, keptSymbols, b)
	}
	secs := map[string][]byte{}
	if m.kept != nil {
		for n, b := range m.kept.sections {
			secs[n] = b
		}
	}
	for n, b := range t.keep.Sections[m] {
		secs[n] = b
	}
	names := make([]string, 0, len(secs))
	for n := range secs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		t.note(seamNote, keptSection, append(putString(keptBase(m), n), secs[n]...))
	}
	if b := putLookups(m); len(b) > 0 {
		t.note(seamNote, keptLookups, append(keptBase(m), b...))
	}
	for _, r := range t.m.track.linkRuns(m) {
		t.note(seamNote, keptLinkTime, append(le.AppendUint64(keptBase(m), uint64(r.at)), r.b...))
	}
}

// note appends one note.
func (t *trimmer) note(name string, typ uint32, desc []byte) {
	le := binary.LittleEndian
	b := le.AppendUint32(t.notes, uint32(len(name)+1))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, typ)
	b = append(append(b, name...), 0)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	b = append(b, desc...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	t.notes = b
}

// write writes the core: header, program headers, notes, pages; and a section
// header that has the count when there are too many segments for e_phnum.
func (t *trimmer) write(w io.Writer) (int64, error) {
	le := binary.LittleEndian
	phnum := 1 + len(t.runs) + len(t.bare)
	many := phnum >= objfile.PNXNum
	off := uint64(objfile.ELFHeaderSize + phnum*objfile.ProgSize)
	shoff := uint64(0)
	if many {
		shoff = off
		off += objfile.SectionSize
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
	shnum := 0
	if many {
		shnum = 1
	}
	for _, v := range []int{objfile.ELFHeaderSize, objfile.ProgSize, min(phnum, objfile.PNXNum), objfile.SectionSize, shnum, 0} {
		h = le.AppendUint16(h, uint16(v))
	}
	prog := func(typ elf.ProgType, flags uint32, off, addr, filesz, memsz, align uint64) {
		h = putProg(h, objfile.Prog{Type: typ, Flags: elf.ProgFlag(flags), Off: off, Vaddr: addr, Filesz: filesz, Memsz: memsz}, align)
	}
	prog(elf.PT_NOTE, 0, off, 0, uint64(len(t.notes)), 0, 4)
	at := off + uint64(len(t.notes))
	gap := -at & (pageSize - 1)
	at += gap
	for _, r := range t.runs {
		n := uint64(r.Hi - r.Lo)
		prog(elf.PT_LOAD, t.m.flagsAt(r.Lo), at, uint64(r.Lo), n, n, pageSize)
		at += n
	}
	for _, b := range t.bare {
		prog(elf.PT_LOAD, b.flags, at, uint64(b.Lo), 0, uint64(b.Hi-b.Lo), pageSize)
	}
	if many { // section header 0: sh_info is the number of segments
		s := make([]byte, objfile.SectionSize)
		le.PutUint32(s[44:], uint32(phnum))
		h = append(h, s...)
	}
	for _, b := range [][]byte{h, t.notes, make([]byte, gap)} {
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
	return int64(at), nil
}

// linkRuns returns the link-time bytes that were read of an image, as runs.
func (s *pageSet) linkRuns(m *Image) []linkRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []linkRun
	for k, b := range s.link {
		if k.img == m {
			all = append(all, linkRun{k.at, b})
		}
	}
	slices.SortFunc(all, func(a, b linkRun) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -cmp.Compare(len(a.b), len(b.b)))
	})
	var out []linkRun
	for _, r := range all {
		if k := len(out) - 1; k >= 0 {
			// What overlaps or follows joins: both are the same bytes.
			if end := out[k].at + arch.Addr(len(out[k].b)); r.at <= end {
				if skip := uint64(end - r.at); skip < uint64(len(r.b)) {
					out[k].b = append(slices.Clip(out[k].b), r.b[skip:]...)
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// putProg appends a program header.
func putProg(b []byte, p objfile.Prog, align uint64) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(p.Type))
	b = le.AppendUint32(b, uint32(p.Flags))
	for _, v := range []uint64{p.Off, p.Vaddr, 0, p.Filesz, p.Memsz, align} {
		b = le.AppendUint64(b, v)
	}
	return b
}
