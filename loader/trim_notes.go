package loader

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// seamNote is the name of the notes in a trimmed core that hold what no page
// of memory does. Each desc begins with the base of the image it is about.
const seamNote = "SEAM"

// Types of SEAM notes. Strings are a 4-byte length and bytes.
const (
	keptSymbols  = 1 // link address, size (8 bytes each), name; repeated
	keptSection  = 2 // name, then the section's bytes
	keptImageRec = 3 // identity and place of an image; see putImage
	keptLinkTime = 4 // address, then bytes as FileView gave them
	keptHeaders  = 5 // program headers, or an image's PE headers up to its sections
	keptLookups  = 6 // 1 if found else 0 (4 bytes), address, size (8 bytes each), name; repeated
	keptHint     = 7 // nothing more: the base is Process.RuntimeHint
	keptAccess   = 8 // no base, nothing: the flags of all segments are right, or 0 of bytes where they are not known
)

// Flags of an image's record.
const (
	keptFlat = 1
	keptLaid = 2
)

// putImage writes an image's record.
func putImage(m *Image) []byte {
	le := binary.LittleEndian
	b := keptBase(m)
	for _, v := range []uint64{uint64(m.span.Lo), uint64(m.span.Hi), m.bias, m.shift, uint64(m.dynAt)} {
		b = le.AppendUint64(b, v)
	}
	state := ImageNotFound
	if m.src != nil && m.src.opened.Load() {
		state = m.src.state
	}
	if m.kept != nil && state != Present {
		state = m.kept.state // the whole core's
	}
	flags := uint32(state) << 8
	if m.Flat {
		flags |= keptFlat
	}
	if m.laid {
		flags |= keptLaid
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint32(b, m.ID.Timestamp)
	b = le.AppendUint32(b, m.ID.Size)
	for _, s := range []string{m.Format, m.ID.Name, m.Path, m.ID.BuildID, m.ID.MVID} {
		b = putString(b, s)
	}
	tables := m.sectionTables()
	b = le.AppendUint32(b, uint32(len(tables)))
	for _, t := range tables {
		b = putString(b, t.name)
		b = le.AppendUint64(b, uint64(t.Lo))
		b = le.AppendUint64(b, uint64(t.Hi))
	}
	b = le.AppendUint32(b, uint32(len(m.maps)))
	for _, r := range m.maps {
		b = le.AppendUint64(b, uint64(r.Lo))
		b = le.AppendUint64(b, uint64(r.Hi))
		b = le.AppendUint64(b, r.off)
	}
	return b
}

func keptBase(m *Image) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(m.span.Lo))
}

func putString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

type namedSpan struct {
	name string
	arch.Span
}

// sectionTables returns, by name, the tables that were asked for and that were
// found through section headers, which no page of memory has.
func (m *Image) sectionTables() []namedSpan {
	m.asked.mu.Lock()
	defer m.asked.mu.Unlock()
	var out []namedSpan
	for n, s := range m.asked.got {
		out = append(out, namedSpan{n, s})
	}
	if m.kept != nil {
		for n, s := range m.kept.tables {
			if _, dup := m.asked.got[n]; !dup {
				out = append(out, namedSpan{n, s})
			}
		}
	}
	slices.SortFunc(out, func(a, b namedSpan) int { return cmp.Compare(a.name, b.name) })
	return out
}

// putLookups writes what Lookup answered.
func putLookups(m *Image) (b []byte) {
	all := map[string]found{}
	if m.kept != nil {
		maps.Copy(all, m.kept.lookups)
	}
	m.asked.mu.Lock()
	maps.Copy(all, m.asked.lookups)
	m.asked.mu.Unlock()
	le := binary.LittleEndian
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		ok := uint32(0)
		if f.ok {
			ok = 1
		}
		b = le.AppendUint64(le.AppendUint64(le.AppendUint32(b, ok), uint64(f.at)), f.size)
		b = putString(b, name)
	}
	return b
}

// putHeaders writes the headers of an image, if they were at hand. A trimmed
// core has them in a note: most images have a header page or two, and no frame
// in them.
func putHeaders(m *Image) []byte {
	progs, pe := m.progs, m.pe
	if m.src != nil && m.src.opened.Load() && m.src.mapped != nil {
		if m.Format == "elf" && progs == nil {
			progs = m.src.progs()
		} else if m.Format == "pe" && pe == nil {
			pe = m.src.peAt(m.shift)
		}
	}
	var b []byte
	for _, p := range progs {
		b = putProg(b, p, 0)
	}
	if pe != nil && len(pe.Raw) <= maxHeaders {
		b = append(b, pe.Raw...)
	}
	return b
}

// maxHeaders bounds the PE headers that a trimmed core keeps: what e_lfanew
// leaps over counts, and .NET's images have less than a page.
const maxHeaders = 1 << 16

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
