package loader

import (
	"cmp"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
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
	runs     []linkRun // by address, once all notes are read; none overlaps another
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
	// A table that was read entry by entry is thousands of runs.
	i, exact := slices.BinarySearchFunc(k.runs, a, func(r linkRun, a arch.Addr) int { return cmp.Compare(r.at, a) })
	if !exact {
		i--
	}
	if i < 0 {
		return nil
	}
	r := k.runs[i]
	if o := uint64(a - r.at); o < uint64(len(r.b)) && uint64(n) <= uint64(len(r.b))-o {
		return append([]byte(nil), r.b[o:o+uint64(n)]...)
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
	k := c.kept.at(base, c.opt.Limits.Images)
	if k == nil {
		return
	}
	k.readNote(n.Type, &r)
	if r.Err() != nil {
		c.p.warn("note_bad", n.Off, "a SEAM note of type %d is broken", n.Type)
	}
}

// at returns what is kept of the image at base, which is made if there are fewer
// than limit images; else it returns nil.
func (kept *keptNotes) at(base arch.Addr, limit int) *keptImage {
	k := kept.byBase[base]
	if k == nil && len(kept.images) < limit {
		k = &keptImage{tables: map[string]arch.Span{}, sections: map[string][]byte{}, lookups: map[string]found{}}
		kept.byBase[base] = k
		kept.images = append(kept.images, k)
	}
	return k
}

// readNote reads a note about the image, but for the base.
func (k *keptImage) readNote(typ uint32, r *bin.Reader) {
	switch typ {
	case keptSymbols:
		for r.Len() > 0 && r.Err() == nil {
			s := Symbol{At: arch.LinkAddr(r.U64()), Size: r.U64(), Name: keptString(r)}
			if r.Err() == nil {
				k.symbols = append(k.symbols, s)
			}
		}
	case keptSection:
		name := keptString(r)
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
		k.read(r)
	case keptHeaders:
		k.headers = r.Bytes(r.Len())
	case keptLookups:
		for r.Len() > 0 && r.Err() == nil {
			f := found{ok: r.U32() != 0, at: arch.Addr(r.U64()), size: r.U64()}
			if name := keptString(r); r.Err() == nil {
				k.lookups[name] = f
			}
		}
	}
}

func keptString(r *bin.Reader) string { return string(r.Bytes(r.Count(uint64(r.U32()), 1))) }

// read reads what putImage wrote, but for the base.
func (k *keptImage) read(r *bin.Reader) {
	m := &Image{kept: k}
	m.span = arch.Span{Lo: arch.Addr(r.U64()), Hi: arch.Addr(r.U64())}
	m.bias, m.shift, m.dynAt = r.U64(), r.U64(), arch.Addr(r.U64())
	flags := r.U32()
	m.Flat, m.laid = flags&keptFlat != 0, flags&keptLaid != 0
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

// fromKept takes the images of a trimmed core from its notes: none of their
// pages need be there.
func (g *coreImages) fromKept(kept *keptNotes) {
	for _, k := range kept.images {
		m := k.image
		if m == nil {
			continue
		}
		slices.SortStableFunc(k.runs, func(a, b linkRun) int { return cmp.Compare(a.at, b.at) })
		if m.Format == "elf" {
			n := len(k.headers) / objfile.ProgSize
			m.progs, _ = objfile.ParseProgs(k.headers, 0, n)
		} else if h, err := objfile.ParsePE(k.headers); err == nil {
			m.pe = h
		}
		g.add(m)
	}
}
