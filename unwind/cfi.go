package unwind

import (
	"bytes"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// Bounds of what call frame information may claim.
const (
	// maxRecord bounds a CIE or FDE, in bytes. The largest in libcoreclr and
	// node have three thousand.
	maxRecord = 64 << 10
	// maxCIE bounds a CIE, in bytes: real ones have 20 to 30. Each takes a
	// kilobyte once it is parsed, so maxCIEs bounds how many an image has:
	// linkers join equal ones, and few compilers leave more than a dozen.
	maxCIE  = 4 << 10
	maxCIEs = 1 << 14
)

// A section is where call frame information lies: in the memory of the
// process, or unpacked from a file (.debug_frame), whose offsets then stand
// for addresses.
type section struct {
	mem  Memory
	data []byte // nil: in mem
}

func (s *section) view(a arch.Addr, n int) []byte {
	if s.data == nil {
		return s.mem.View(a, n)
	}
	if a > arch.Addr(len(s.data)) || n > len(s.data)-int(a) {
		return nil
	}
	return s.data[a : a+arch.Addr(n)]
}

// A cfi reads the DWARF call frame information of one image: of .eh_frame, or
// of .debug_frame, which differ a little. It is shared by all walkers.
type cfi struct {
	arch  *arch.Arch
	mem   Memory
	abi   *arch.ABI
	nregs int
	span  arch.Span // of the image
	sect  section
	base  objfile.Bases // of pointers; Func differs by FDE, and is not set here
	ptrs  objfile.Pointers
	debug bool // .debug_frame

	mu   sync.RWMutex
	cies map[arch.Addr]*cie
}

// A cie is a parsed common information entry.
type cie struct {
	program   []byte    // initial instructions
	programAt arch.Addr // where they lie
	codeAlign uint64
	dataAlign int64
	ra        uint64 // column of the return address
	addrSize  int
	segSize   int
	enc       uint8 // of the pointers in its FDEs
	sized     bool  // FDEs give the size of their augmentation
	signal    bool  // the frame was interrupted, not calling
	init      row   // the registers after the initial instructions
	fault     fault // why it cannot be used
}

// An fde is a parsed frame description entry. It is a value, made anew at each
// look-up: what is looked up twice is in the walker's cache.
type fde struct {
	at        arch.Addr
	code      arch.Span
	cie       *cie
	program   []byte
	programAt arch.Addr
}

// A fault says what is wrong with call frame information: the zero value,
// nothing; bytes at At are missing; or broken.
type fault struct {
	reason Reason
	at     arch.Addr
}

func broken(at arch.Addr) fault { return fault{BadInfo, at} }

// A record is the frame that CIEs and FDEs have in common.
type record struct {
	at   arch.Addr
	next arch.Addr
	// id is the address of the CIE for an FDE; for a CIE isCIE is set; for a
	// terminator end is.
	id    arch.Addr
	isCIE bool
	end   bool
}

// head reads the head of the record at a. The cursor then is at its body.
func (t *cfi) head(a arch.Addr, r *record) (cursor, fault) {
	r.at, r.isCIE, r.end, r.id = a, false, false, 0
	b := t.sect.view(a, 4)
	if b == nil {
		return cursor{}, fault{InfoMissing, arch.FirstMissing(t.viewer(), a, 4)}
	}
	c := cursor{b: b, at: a}
	n, size := uint64(c.u32()), 4
	body := a + 4
	if n == 0 {
		r.next, r.end = body, true
		return cursor{}, fault{}
	}
	wide := n == 1<<32-1
	if wide {
		if b = t.sect.view(body, 8); b == nil {
			return cursor{}, fault{InfoMissing, arch.FirstMissing(t.viewer(), body, 8)}
		}
		c = cursor{b: b}
		n = c.u64()
		body += 8
		// The Linux Standard Base keeps the CIE pointer of .eh_frame at
		// four bytes.
		if t.debug {
			size = 8
		}
	}
	if n < uint64(size) || n > maxRecord {
		return cursor{}, broken(a)
	}
	r.next = body + arch.Addr(n)
	if b = t.sect.view(body, int(n)); b == nil {
		return cursor{}, fault{InfoMissing, arch.FirstMissing(t.viewer(), body, int(n))}
	}
	c = cursor{b: b, at: body}
	id := c.uint(size)
	switch {
	case !t.debug:
		r.isCIE, r.id = id == 0, body-arch.Addr(id)
	case wide:
		r.isCIE, r.id = id == 1<<64-1, arch.Addr(id)
	default:
		r.isCIE, r.id = id == 1<<32-1, arch.Addr(id)
	}
	return c, fault{}
}

// viewer returns the section as a memory, to search it for a missing byte.
func (t *cfi) viewer() Memory {
	if t.sect.data == nil {
		return t.mem
	}
	return fileMemory{&t.sect}
}

type fileMemory struct{ s *section }

func (m fileMemory) View(a arch.Addr, n int) []byte { return m.s.view(a, n) }
func (m fileMemory) Word(arch.Addr) (uint64, bool)  { return 0, false }

// cieAt returns the CIE at a, parsed once. That one is broken is remembered
// too: all FDEs of an image may name it.
func (t *cfi) cieAt(a arch.Addr) (*cie, fault) {
	t.mu.RLock()
	ci, n := t.cies[a], len(t.cies)
	t.mu.RUnlock()
	if ci != nil {
		return ci, ci.fault
	}
	if n >= maxCIEs {
		return nil, broken(a)
	}
	ci, f := t.parseCIE(a)
	if f.reason != 0 {
		ci = &cie{fault: f}
	}
	t.mu.Lock()
	if t.cies == nil {
		t.cies = map[arch.Addr]*cie{}
	}
	t.cies[a] = ci
	t.mu.Unlock()
	return ci, f
}

func (t *cfi) parseCIE(a arch.Addr) (*cie, fault) {
	var r record
	c, f := t.head(a, &r)
	if f.reason != 0 {
		return nil, f
	}
	if !r.isCIE || len(c.b) > maxCIE {
		return nil, broken(a)
	}
	ci := &cie{addrSize: t.arch.Word}
	version := c.u8()
	if version != 1 && version != 3 && version != 4 {
		return nil, broken(a)
	}
	end := bytes.IndexByte(c.b[c.i:], 0)
	if end < 0 {
		return nil, broken(a)
	}
	aug := c.bytes(uint64(end))
	c.u8()
	// GCC 2 had augmentation "eh": a pointer follows, of no use to us.
	if len(aug) >= 2 && aug[0] == 'e' && aug[1] == 'h' {
		c.bytes(uint64(t.arch.Word))
		aug = aug[2:]
	}
	if version >= 4 {
		ci.addrSize, ci.segSize = int(c.u8()), int(c.u8())
		if ci.addrSize != 4 && ci.addrSize != 8 {
			return nil, broken(a)
		}
	}
	ci.codeAlign = c.uleb()
	ci.dataAlign = c.sleb()
	if version == 1 {
		ci.ra = uint64(c.u8())
	} else {
		ci.ra = c.uleb()
	}
	if !t.augmentation(ci, aug, &c) || c.bad || ci.ra >= uint64(t.nregs) {
		return nil, broken(a)
	}
	ci.programAt = c.here()
	ci.program = c.b[c.i:]
	m := machine{cfi: t, cie: ci, row: &ci.init, part: partCIE, target: ^arch.Addr(0)}
	if f := m.run(ci.program, ci.programAt, 0); f.reason != 0 {
		return nil, f
	}
	return ci, fault{}
}

// augmentation reads what the letters of aug announce (LSB Core 5.0, section
// 10.6.1.1.1): P personality, L encoding of the LSDA pointer, R encoding of
// FDE addresses, S signal frame, and on ARM64 B (return addresses are signed
// with key B) and G (stack memory is tagged), which have no data. A letter
// that is not known is passed over if "z" gave the size of the whole.
func (t *cfi) augmentation(ci *cie, aug []byte, c *cursor) bool {
	if ci.addrSize == 4 {
		ci.enc = objfile.PtrU4
	}
	after := -1
	if len(aug) > 0 && aug[0] == 'z' {
		n := c.uleb()
		if c.bad || n > uint64(len(c.b)-c.i) {
			return false
		}
		ci.sized = true
		after = c.i + int(n)
		aug = aug[1:]
	}
letters:
	for _, l := range aug {
		switch l {
		case 'L':
			c.u8()
		case 'R':
			ci.enc = c.u8()
		case 'P':
			// Read, not followed: it may be indirect, and its word missing.
			enc := c.u8()
			if enc&objfile.PtrBase == objfile.PtrAligned {
				c.bytes(uint64(-c.here()) & uint64(t.arch.Word-1))
				enc = objfile.PtrAbs
			}
			if enc != objfile.PtrOmit {
				c.value(enc, t.arch.Word)
			}
		case 'S':
			ci.signal = true
		case 'B', 'G':
		default:
			if after < 0 {
				return false
			}
			break letters
		}
	}
	if after >= 0 {
		c.i = after
	}
	return true
}

// parseFDE reads the FDE at a.
func (t *cfi) parseFDE(a arch.Addr, d *fde) fault {
	var r record
	c, f := t.head(a, &r)
	if f.reason != 0 {
		return f
	}
	if r.isCIE || r.end {
		return broken(a)
	}
	return t.body(&r, &c, d)
}

// body reads the rest of an FDE whose head was read.
func (t *cfi) body(r *record, c *cursor, d *fde) fault {
	ci, f := t.cieAt(r.id)
	if f.reason != 0 {
		return f
	}
	d.at, d.cie = r.at, ci
	c.bytes(uint64(ci.segSize))
	lo, missing := t.pointer(c, ci.enc, &t.base)
	if missing != 0 {
		return fault{InfoMissing, missing}
	}
	n := c.value(ci.enc, ci.addrSize) // a length: only the format of enc applies
	d.code = arch.Span{Lo: lo, Hi: lo + arch.Addr(n)}
	if d.code.Hi < lo {
		return broken(r.at)
	}
	if ci.sized {
		c.bytes(c.uleb())
	}
	if c.bad {
		return broken(r.at)
	}
	d.programAt = c.here()
	d.program = c.b[c.i:]
	return fault{}
}
