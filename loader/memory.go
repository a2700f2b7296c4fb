package loader

import (
	"encoding/binary"
	"sort"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
)

// A Memory is the memory of a process: what the dump has of it, then what
// image files of the right identity have at the same place. Holes are known
// to be holes. Only bytes that the process cannot have changed are taken from
// a file: those of writable segments are not (see [Image.FileView]).
//
// Where segments of a dump overlap, the one that comes first in the file has
// the bytes, as gdb reads it; no kernel and no tool of ours writes such dumps.
type Memory struct {
	segs []segment
	held *held // the files; nil only for a Memory without segments
	// state is not 0 if Word's short way does not do: the bits of held.state, and
	// tracked.
	state atomic.Uint32
	// hint has, by page of the address, one more than the segment that was found
	// last; 0: none. Stack words come by the dozen from one page, which makes
	// most look-ups one comparison.
	hint [hints]atomic.Uint32

	mapped []mapping // what the dump says was mapped, sorted; may be all it says
	sparse bool      // the dump lists only what it holds: nothing is known of the rest
	files  []fileMap // parts of images that were mapped from files, sorted, not overlapping
	track  *pageSet  // nil unless reads are to be remembered
	bare   *Memory   // where track is not nil: the same memory, whose reads are not remembered

	access  bool       // the flags in mapped say what may be executed
	trimmed bool       // flags of 0 of bytes that are there mean that it is not known
	noted   arch.Spans // what notes list as mapped, whether or not a segment does
	gate    arch.Span  // ABI.Gate
}

const hints = 512

// A segment is a run of memory whose bytes the dump has.
type segment struct {
	lo   arch.Addr
	data []byte
}

func (s *segment) hi() arch.Addr { return s.lo + arch.Addr(len(s.data)) }

// A mapping is a range that was mapped, whether or not the dump has its bytes.
type mapping struct {
	arch.Span
	flags uint32 // PF_X, PF_W, PF_R
}

// A fileMap is a range of addresses that an image's file was mapped at.
type fileMap struct {
	arch.Span
	off uint64 // in the image's file
	img *Image
}

// Word returns the 8 bytes at a as a little-endian number.
func (m *Memory) Word(a arch.Addr) (v uint64, ok bool) {
	if i := uint(m.hint[(a>>12)%hints].Load()) - 1; i < uint(len(m.segs)) {
		s := &m.segs[i]
		if o := uint64(a - s.lo); o < uint64(len(s.data)) {
			if b := s.data[o:]; len(b) >= 8 {
				v = binary.LittleEndian.Uint64(b)
				// Behind the read: Close may have put an empty page there meanwhile.
				if m.state.Load() == 0 {
					return v, true
				}
			}
		}
	}
	return m.farWord(a)
}

// farWord is Word where the hint does not help: the segment is searched, a
// word across two segments is put together, files are asked.
func (m *Memory) farWord(a arch.Addr) (v uint64, ok bool) {
	if b := m.search(a); len(b) >= 8 {
		if m.track != nil {
			m.track.add(a, 8)
		}
		v = binary.LittleEndian.Uint64(b)
		return v, m.state.Load()&heldClosed == 0
	} else if b == nil {
		return 0, false
	}
	var w [8]byte
	if m.Read(a, w[:]) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(w[:]), true
}

// Slice returns the n bytes at a without copying, or nil when one is missing
// or they do not lie in one piece.
func (m *Memory) Slice(a arch.Addr, n int) []byte {
	b := m.piece(a)
	if n < 0 || len(b) < n || b == nil {
		return nil
	}
	if m.track != nil {
		m.track.add(a, n)
	}
	return b[:n:n]
}

// View returns the n bytes at a, or nil when one is missing. It copies them
// only when they do not lie in one piece.
func (m *Memory) View(a arch.Addr, n int) []byte {
	if b := m.Slice(a, n); b != nil || n <= 0 {
		return b
	}
	// Make room only for what is there: n may be what a broken header claims.
	if m.have(a, n) < n {
		return nil
	}
	b := make([]byte, n)
	m.Read(a, b)
	return b
}

// Read copies to p the bytes at a up to the first missing one, and returns how
// many.
func (m *Memory) Read(a arch.Addr, p []byte) int {
	n := 0
	for n < len(p) {
		k := copy(p[n:], m.piece(a+arch.Addr(n)))
		if k == 0 || m.held.closed() {
			break
		}
		n += k
	}
	if m.track != nil && n > 0 {
		m.track.add(a, n)
	}
	return n
}

// have returns how many of the n bytes at a are at hand before the first
// missing one.
func (m *Memory) have(a arch.Addr, n int) int {
	k := 0
	for k < n {
		b := m.piece(a + arch.Addr(k))
		if len(b) == 0 {
			return k
		}
		k += len(b)
	}
	return n
}

// piece returns the bytes from a on that lie in one piece, or nil.
func (m *Memory) piece(a arch.Addr) []byte {
	if i := uint(m.hint[(a>>12)%hints].Load()) - 1; i < uint(len(m.segs)) && m.state.Load() == 0 {
		s := &m.segs[i]
		if o := uint64(a - s.lo); o < uint64(len(s.data)) {
			return s.data[o:]
		}
	}
	return m.search(a)
}

// search is piece without the hint.
func (m *Memory) search(a arch.Addr) []byte {
	i := m.segAfter(a)
	if i < len(m.segs) && m.segs[i].lo <= a {
		b := m.segs[i].data[a-m.segs[i].lo:]
		if m.state.Load() != 0 {
			return m.held.whole(b)
		}
		m.hint[(a>>12)%hints].Store(uint32(i + 1))
		return b
	}
	b := m.filePiece(a)
	if i < len(m.segs) && uint64(len(b)) > uint64(m.segs[i].lo-a) {
		b = b[:m.segs[i].lo-a] // what the dump has comes first
	}
	return b
}

// dumped returns the bytes from a on that the dump itself has. It does not
// count as a read: it is for checking files against the dump.
func (m *Memory) dumped(a arch.Addr) []byte {
	if i := m.segAfter(a); i < len(m.segs) && m.segs[i].lo <= a {
		return m.held.whole(m.segs[i].data[a-m.segs[i].lo:])
	}
	return nil
}

// segAfter returns the first segment that ends after a.
func (m *Memory) segAfter(a arch.Addr) int {
	lo, hi := 0, len(m.segs)
	for lo < hi {
		if k := int(uint(lo+hi) >> 1); m.segs[k].hi() <= a {
			lo = k + 1
		} else {
			hi = k
		}
	}
	return lo
}

// filePiece returns the bytes from a on that an image's file has.
func (m *Memory) filePiece(a arch.Addr) []byte {
	if f := m.fileAt(a); f != nil {
		return f.img.served(a)
	}
	return nil
}

// fileAt returns the file mapping that holds a, or nil.
func (m *Memory) fileAt(a arch.Addr) *fileMap {
	i := sort.Search(len(m.files), func(i int) bool { return m.files[i].Hi > a })
	if i < len(m.files) && m.files[i].Lo <= a {
		return &m.files[i]
	}
	return nil
}

// mappedAt returns what the dump says of the mapping that holds a.
func (m *Memory) mappedAt(a arch.Addr) (mapping, bool) {
	if i, ok := m.mappingAt(a); ok {
		return m.mapped[i], true
	}
	return mapping{}, false
}

// mappingAt returns which of m.mapped holds a.
func (m *Memory) mappingAt(a arch.Addr) (i int, ok bool) {
	i = sort.Search(len(m.mapped), func(i int) bool { return m.mapped[i].Hi > a })
	return i, i < len(m.mapped) && m.mapped[i].Lo <= a
}

// An Absence says why a byte is not at hand.
type Absence uint8

const (
	Present       Absence = iota
	Unmapped              // no mapping of the process holds the address
	NotDumped             // mapped, anonymous or written to, and the dump does not have it
	ImageNotFound         // part of an image whose file was not found
	ImageDiffers          // part of an image; a file of its name was found, and is of another build
	ImageCut              // part of an image; the file found ends before it
)

var absences = [...]string{
	Present: "present", Unmapped: "not mapped", NotDumped: "not dumped",
	ImageNotFound: "image file not found", ImageDiffers: "image file is of another build",
	ImageCut: "image file is cut short",
}

func (a Absence) String() string { return absences[a] }

// userEnd is where no user-space mapping of a 64-bit process can lie.
const userEnd = 1 << 56

// Absent says why the byte at a is not at hand, and which image would hold it
// (nil when none would). createdump lists only what it dumps. So in its dumps an
// address that is not listed counts as NotDumped, unless no process could have
// mapped it.
func (m *Memory) Absent(a arch.Addr) (Absence, *Image) {
	if m.piece(a) != nil {
		if m.track != nil {
			m.track.add(a, 1) // that it is there is an answer, too
		}
		return Present, nil
	}
	if f := m.fileAt(a); f != nil {
		return f.img.absent(a), f.img
	}
	if _, ok := m.mappedAt(a); ok || m.sparse && a >= 1<<16 && a < userEnd {
		return NotDumped, nil
	}
	return Unmapped, nil
}

// Untracked returns the same memory, of which no trim remembers what is read:
// for what a trimmed core has in a note instead, as the names of symbols.
func (m *Memory) Untracked() *Memory {
	if m.track == nil {
		return m
	}
	return m.bare
}

// tracked is a bit of Memory.state.
const tracked = 1 << 8

// remember has all reads from now on remembered.
func (m *Memory) remember() {
	m.bare = &Memory{segs: m.segs, held: m.held, mapped: m.mapped, sparse: m.sparse, files: m.files, access: m.access, trimmed: m.trimmed, noted: m.noted, gate: m.gate}
	m.held.has(m.bare)
	m.track = newPageSet()
	m.state.Or(tracked)
}

// Touched returns which pages were read, from the dump or a file, as runs of
// whole 4 KB pages in order. It is empty without Options.Track.
func (m *Memory) Touched() []arch.Span {
	if m.track == nil {
		return nil
	}
	return m.track.spans()
}
