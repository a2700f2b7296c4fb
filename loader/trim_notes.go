package loader

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
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

// A Symbol is one entry of a symbol table that a trimmed core keeps.
type Symbol struct {
	At   arch.LinkAddr
	Size uint64
	Name string
}

// keptNotes is what the SEAM notes of a core say.
type keptNotes struct {
	hint   arch.Addr
	access bool // see keptAccess
	images []*keptImage
	byBase map[arch.Addr]*keptImage
}

// A keptImage is what a trimmed core says of one image.
type keptImage struct {
	image    *Image  // nil until its record has been read
	state    Absence // of its file, when the core was trimmed
	tables   map[string]arch.Span
	symbols  []Symbol
	sections map[string][]byte
	runs     []linkRun
	headers  []byte
	lookups  map[string]found
}

// A linkRun is a run of link-time bytes.
type linkRun struct {
	at arch.Addr
	b  []byte
}

// KeptSymbols returns the symbols that a trimmed core keeps for the image.
func (m *Image) KeptSymbols() []Symbol {
	if m.kept == nil {
		return nil
	}
	return m.kept.symbols
}

// CutWithFile reports whether the core was trimmed, with the image's file at
// hand: then it has what the file gave, and looking for it again is of no use.
func (m *Image) CutWithFile() bool { return m.kept != nil && m.kept.state == Present }

func (k *keptImage) section(name string) ([]byte, bool) {
	if k == nil {
		return nil, false
	}
	b, ok := k.sections[name]
	return b, ok
}

// linkTime returns a copy of link-time bytes that were kept.
func (k *keptImage) linkTime(a arch.Addr, n int) []byte {
	if k == nil {
		return nil
	}
	for _, r := range k.runs {
		if o := uint64(a - r.at); o < uint64(len(r.b)) && uint64(n) <= uint64(len(r.b))-o {
			return append([]byte(nil), r.b[o:o+uint64(n)]...)
		}
	}
	return nil
}

// absent says what the whole dump would have said of the byte at a.
func (k *keptImage) absent(m *Image, a arch.Addr) Absence {
	if k.state == Present || m.src == nil || m.writable(a) {
		return NotDumped
	}
	return k.state
}

// keptNote reads one SEAM note; what is broken is left out with a warning.
func (c *core) keptNote(n objfile.Note) {
	if c.kept == nil {
		c.kept = &keptNotes{byBase: map[arch.Addr]*keptImage{}}
	}
	if n.Type == keptAccess {
		c.kept.access = true
		return
	}
	r := bin.New("SEAM note", n.Desc)
	base := arch.Addr(r.U64())
	if n.Type == keptHint {
		c.kept.hint = base
		return
	}
	k := c.kept.byBase[base]
	if k == nil {
		if len(c.kept.images) >= c.opt.Limits.Images {
			return
		}
		k = &keptImage{tables: map[string]arch.Span{}, sections: map[string][]byte{}, lookups: map[string]found{}}
		c.kept.byBase[base] = k
		c.kept.images = append(c.kept.images, k)
	}
	switch n.Type {
	case keptSymbols:
		for r.Len() > 0 && r.Err() == nil {
			s := Symbol{At: arch.LinkAddr(r.U64()), Size: r.U64(), Name: keptString(&r)}
			if r.Err() == nil {
				k.symbols = append(k.symbols, s)
			}
		}
	case keptSection:
		name := keptString(&r)
		b := r.Bytes(r.Len())
		if r.Err() == nil {
			k.sections[name] = b
		}
	case keptLinkTime:
		at := arch.Addr(r.U64())
		b := r.Bytes(r.Len())
		if r.Err() == nil {
			k.runs = append(k.runs, linkRun{at, b})
		}
	case keptImageRec:
		k.read(&r)
	case keptHeaders:
		k.headers = r.Bytes(r.Len())
	case keptLookups:
		for r.Len() > 0 && r.Err() == nil {
			f := found{ok: r.U32() != 0, at: arch.Addr(r.U64()), size: r.U64()}
			if name := keptString(&r); r.Err() == nil {
				k.lookups[name] = f
			}
		}
	}
	if r.Err() != nil {
		c.p.warn("note_bad", n.Off, "a SEAM note of type %d is broken", n.Type)
	}
}

func keptString(r *bin.Reader) string { return string(r.Bytes(r.Count(uint64(r.U32()), 1))) }

// read reads what putImage wrote, but for the base.
func (k *keptImage) read(r *bin.Reader) {
	m := &Image{kept: k}
	m.span = arch.Span{Lo: arch.Addr(r.U64()), Hi: arch.Addr(r.U64())}
	m.bias, m.shift, m.dynAt = r.U64(), r.U64(), arch.Addr(r.U64())
	flags := r.U32()
	m.Flat = flags&1 != 0
	state := Absence(flags >> 8 & 0xff)
	m.ID.Timestamp, m.ID.Size = r.U32(), r.U32()
	for _, s := range []*string{&m.Format, &m.ID.Name, &m.Path, &m.ID.BuildID, &m.ID.MVID} {
		*s = keptString(r)
	}
	for range r.Count(uint64(r.U32()), 20) {
		name := keptString(r)
		k.tables[name] = arch.Span{Lo: arch.Addr(r.U64()), Hi: arch.Addr(r.U64())}
	}
	for range r.Count(uint64(r.U32()), 24) {
		m.maps = append(m.maps, fileMap{arch.Span{Lo: arch.Addr(r.U64()), Hi: arch.Addr(r.U64())}, r.U64(), nil})
	}
	if r.Err() != nil || state > ImageCut || m.Format != "elf" && m.Format != "pe" || m.span.Lo >= m.span.Hi {
		r.Fail()
		return
	}
	k.image, k.state = m, state
}

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
		flags |= 1
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

// sectionTables returns, by name, the tables that were asked for and that only
// section headers told of.
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

// fromKept takes the images of a trimmed core from its notes: none of their
// pages need be there.
func (g *coreImages) fromKept(kept *keptNotes) {
	for _, k := range kept.images {
		m := k.image
		if m == nil {
			continue
		}
		if m.Format == "elf" {
			n := len(k.headers) / objfile.ProgSize
			m.progs, _ = objfile.ParseProgs(k.headers, 0, n)
		} else if h, err := objfile.ParsePE(k.headers); err == nil {
			m.pe = h
		}
		g.add(m)
	}
}
