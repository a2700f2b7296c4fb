package objfile

import (
	"bytes"
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
)

// A Reader gives bytes by address: a process's memory, or an [Image], which
// has a file's bytes at the addresses that they would be mapped at.
type Reader interface {
	// View returns the n bytes at a, or nil when one of them is missing. They
	// are not to be written to.
	View(a arch.Addr, n int) []byte
}

// text returns the zero-terminated string of at most most bytes at a; ok is
// false when it is longer or not all there.
func text(r Reader, a arch.Addr, most int) (s string, ok bool) {
	// Most names are short, and their page ends later than they do.
	const piece = 64
	var out []byte
	for len(out) <= most {
		n := min(piece, most+1-len(out))
		b := r.View(a+arch.Addr(len(out)), n)
		if b == nil {
			b = r.View(a+arch.Addr(len(out)), 1)
		}
		if b == nil {
			return "", false
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(out, b[:i]...)), true
		}
		out = append(out, b...)
	}
	return "", false
}

// u32 returns the 4 bytes at a as a little-endian number.
func u32(r Reader, a arch.Addr) (v uint32, ok bool) {
	b := r.View(a, 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// u64 returns the 8 bytes at a as a little-endian number.
func u64(r Reader, a arch.Addr) (v uint64, ok bool) {
	b := r.View(a, 8)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
