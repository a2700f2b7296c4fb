package ecma

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/seamwalk/seam/arch"
)

// An Error says what of the metadata could not be read and where.
type Error struct {
	What    string
	At      arch.Addr
	Missing bool // the bytes are not at hand; otherwise they are broken
}

func (e *Error) Error() string {
	if e.Missing {
		return fmt.Sprintf("%s is missing at %s", e.What, e.At)
	}
	return fmt.Sprintf("%s is broken at %s", e.What, e.At)
}

// maxName bounds a name in bytes. The CLI allows 1023 (II.22).
const maxName = 4096

// A Metadata is the metadata of one module. It holds sizes and offsets only,
// and is safe for concurrent use.
type Metadata struct {
	mem    arch.Memory
	at     arch.Addr // of the root
	strs   heap
	guids  heap
	blobs  heap
	users  heap   // #US
	sorted uint64 // bit t: table t is sorted as II.22 asks
	tables [tableCount]table
	beside [tableCount]uint32 // of a portable PDB: rows of tables that its assembly has, and it has not
	id     PDBID              // of a portable PDB

	// Where a column must be searched that nothing keeps in order: see lookup.
	nested, params, methods lookup
}

// A heap is a stream of the metadata.
type heap struct {
	off, size uint32 // from the root
}

// A table is where the rows of a table lie.
type table struct {
	off  uint64 // of the first row, from the root
	rows uint32
	ends [maxColumns + 1]uint8 // where each column ends in a row; ends[0] is 0
	size uint8                 // of a row
}

// Open reads the header of metadata whose root ('BSJB') lies at at and which
// has size bytes.
func Open(mem arch.Memory, at arch.Addr, size uint32) (*Metadata, error) {
	streams, err := Streams(mem, at, size)
	if err != nil {
		return nil, err
	}
	m := &Metadata{mem: mem, at: at}
	var rows, pdb heap
	wide := false
	for _, s := range streams {
		switch h := (heap{s.Off, s.Size}); s.Name {
		case "#Strings":
			m.strs = h
		case "#GUID":
			m.guids = h
		case "#Blob":
			m.blobs = h
		case "#US":
			m.users = h
		case "#~", "#-":
			rows = h
		case "#Pdb":
			pdb = h
		case "#JTD":
			// "Just the delta": a mark that every index has four bytes
			// whatever the row counts are, as edit-and-continue writes it.
			wide = true
		}
	}
	if rows.size == 0 {
		return nil, &Error{"metadata without a tables stream", at, false}
	}
	if pdb.size != 0 {
		if err := m.pdb(pdb); err != nil {
			return nil, err
		}
	}
	return m, m.layout(rows, wide)
}

// layout finds where each table lies (II.24.2.6). A claim of more rows than
// the stream has bytes for is refused here, once and for all.
func (m *Metadata) layout(s heap, wide bool) error {
	a := m.at + arch.Addr(s.off)
	b := m.mem.View(a, 24)
	if b == nil {
		return &Error{"the header of the metadata tables", a, true}
	}
	heaps, valid := b[6], binary.LittleEndian.Uint64(b[8:])
	m.sorted = binary.LittleEndian.Uint64(b[16:])
	n := bits.OnesCount64(valid)
	off := uint64(24 + 4*n)
	if heaps&0x40 != 0 {
		off += 4 // a word that edit-and-continue adds: not in ECMA-335
	}
	counts := m.mem.View(a+24, 4*n)
	if counts == nil {
		return &Error{"the row counts of the metadata tables", a + 24, true}
	}
	for t := range m.tables {
		if valid>>t&1 != 0 {
			m.tables[t].rows = binary.LittleEndian.Uint32(counts)
			counts = counts[4:]
		}
	}
	for t := range m.tables {
		tab := &m.tables[t]
		for i, c := range schema[t] {
			tab.size += m.width(c, heaps, wide)
			tab.ends[i+1] = tab.size
		}
		tab.off = uint64(s.off) + off
		if off += uint64(tab.rows) * uint64(tab.size); off > uint64(s.size) {
			return &Error{fmt.Sprintf("metadata table %#x of %d rows", t, tab.rows), m.at + arch.Addr(tab.off), false}
		}
	}
	return nil
}

// width returns how many bytes a column has.
func (m *Metadata) width(c column, heaps uint8, wide bool) uint8 {
	var big bool
	switch c {
	case u2:
		return 2
	case u4:
		return 4
	case str:
		big = heaps&1 != 0
	case guid:
		big = heaps&2 != 0
	case blob:
		big = heaps&4 != 0
	default:
		ts, ok := coded[c]
		if !ok {
			big = m.referred(Table(c&0x3f)) > 0xffff
			break
		}
		tag := bits.Len(uint(len(ts) - 1))
		for _, t := range ts {
			if t < tableCount && m.referred(t) >= 1<<(16-tag) {
				big = true
			}
		}
	}
	if big || wide {
		return 4
	}
	return 2
}

// referred returns how many rows of t an index can refer to.
func (m *Metadata) referred(t Table) uint32 { return max(m.tables[t].rows, m.beside[t]) }

// Rows returns how many rows t has.
func (m *Metadata) Rows(t Table) uint32 { return m.tables[t].rows }

// A row is one row of a table.
type row struct {
	t *table
	b []byte
}

// row reads row rid (1 is the first) of t.
func (m *Metadata) row(t Table, rid uint32) (row, error) {
	tab := &m.tables[t]
	if rid == 0 || rid > tab.rows {
		return row{}, &Error{fmt.Sprintf("row %d of metadata table %#x, which has %d,", rid, uint8(t), tab.rows), m.at + arch.Addr(tab.off), false}
	}
	a := m.at + arch.Addr(tab.off) + arch.Addr(rid-1)*arch.Addr(tab.size)
	b := m.mem.View(a, int(tab.size))
	if b == nil {
		return row{}, &Error{fmt.Sprintf("row %d of metadata table %#x", rid, uint8(t)), a, true}
	}
	return row{tab, b}, nil
}

// col returns the value of column i.
func (r row) col(i int) uint32 {
	b := r.b[r.t.ends[i]:r.t.ends[i+1]]
	if len(b) == 2 {
		return uint32(binary.LittleEndian.Uint16(b))
	}
	return binary.LittleEndian.Uint32(b)
}

// decode splits a coded index into a table and a row. A tag that is not used
// gives a table without rows.
func decode(c column, v uint32) (Table, uint32) {
	ts := coded[c]
	tag := bits.Len(uint(len(ts) - 1))
	i := v & (1<<tag - 1)
	if int(i) >= len(ts) || ts[i] >= tableCount {
		return tableCount - 1, 0
	}
	return ts[i], v >> tag
}

// text returns the string at off of #Strings.
func (m *Metadata) text(off uint32) (string, error) {
	a := m.at + arch.Addr(m.strs.off) + arch.Addr(off)
	if off >= m.strs.size {
		if off == 0 {
			return "", nil // an empty heap may be left out
		}
		return "", &Error{"a name beyond its heap", a, false}
	}
	s, ok := CString(m.mem, a, int(min(m.strs.size-off, maxName)))
	if !ok {
		return "", &Error{"a name in the metadata", a, true}
	}
	return s, nil
}

// blob returns the bytes at off of #Blob.
func (m *Metadata) blob(off uint32) ([]byte, error) { return m.blobIn(m.blobs, off) }

// blobIn returns the bytes at off of #Blob or #US (II.24.2.4).
func (m *Metadata) blobIn(h heap, off uint32) ([]byte, error) {
	a := m.at + arch.Addr(h.off) + arch.Addr(off)
	if off >= h.size {
		return nil, &Error{"a blob beyond its heap", a, false}
	}
	first := m.mem.View(a, 1)
	if first == nil {
		return nil, &Error{"a blob of the metadata", a, true}
	}
	head := 1
	switch {
	case first[0]&0xc0 == 0x80:
		head = 2
	case first[0]&0xe0 == 0xc0:
		head = 4
	}
	b := m.mem.View(a, head)
	if b == nil {
		return nil, &Error{"a blob of the metadata", a, true}
	}
	n, _ := Compressed(b)
	if uint64(off)+uint64(head)+uint64(n) > uint64(h.size) {
		return nil, &Error{"the length of a blob", a, false}
	}
	if b = m.mem.View(a+arch.Addr(head), int(n)); b == nil && n != 0 {
		return nil, &Error{"a blob of the metadata", a, true}
	}
	return b, nil
}

// Compressed reads an unsigned number of one, two or four bytes, the high ones
// first (II.23.2), and says how many it has; 0 when b is too short.
func Compressed(b []byte) (v uint32, n int) {
	switch {
	case len(b) >= 1 && b[0]&0x80 == 0:
		return uint32(b[0]), 1
	case len(b) >= 2 && b[0]&0xc0 == 0x80:
		return uint32(binary.BigEndian.Uint16(b)) & 0x3fff, 2
	case len(b) >= 4 && b[0]&0xe0 == 0xc0:
		return binary.BigEndian.Uint32(b) & 0x1fffffff, 4
	}
	return 0, 0
}

// CString reads the text at a up to its zero byte, and reports false when a
// byte is missing before it or there is none among the first limit bytes. It
// reads whole aligned words, which never reach into another page.
func CString(mem arch.Memory, a arch.Addr, limit int) (string, bool) {
	var s []byte
	for len(s) < limit {
		var w [8]byte
		at := a + arch.Addr(len(s))
		skip := int(at & 7)
		v, ok := mem.Word(at &^ 7)
		if !ok {
			// The bytes at hand may end within the word.
			b := mem.View(at, 1)
			if b == nil {
				return "", false
			}
			if b[0] == 0 {
				return string(s), true
			}
			s = append(s, b[0])
			continue
		}
		binary.LittleEndian.PutUint64(w[:], v)
		for _, c := range w[skip:] {
			if c == 0 {
				return string(s), true
			}
			s = append(s, c)
		}
	}
	return "", false
}
