package clr

import "github.com/seamwalk/seam/arch"

// A nibbleReader reads numbers of nibbles: three bits each, the highest first, and
// one bit that says that more follow. The low nibble of a byte comes first
// (src/coreclr/inc/nibblestream.h).
type nibbleReader struct {
	r    *Runtime  // bytes that do not change; nil: b has them
	b    []byte    // from address 0
	at   arch.Addr // of the byte that the next nibble is in
	high bool      // it is the high one
	bad  bool      // a byte was missing, or a number had no end
}

// maxNumberNibbles bounds a number, which has 32 bits.
const maxNumberNibbles = 11

func (s *nibbleReader) number() (v uint32) {
	for range maxNumberNibbles {
		c, ok := s.byte()
		if !ok {
			break
		}
		if s.high {
			c >>= 4
			s.at++
		}
		s.high = !s.high
		v = v<<3 | uint32(c&7)
		if c&8 == 0 {
			return v
		}
	}
	s.bad = true
	return 0
}

// byte returns the byte that the next nibble is in.
func (s *nibbleReader) byte() (uint8, bool) {
	if s.r != nil {
		return s.r.linkedByte(s.at)
	}
	if s.at >= arch.Addr(len(s.b)) {
		return 0, false
	}
	return s.b[s.at], true
}

// skip passes over n numbers.
func (s *nibbleReader) skip(n int) {
	for range n {
		s.number()
	}
}

// rest returns the address of the first byte that no number has begun in.
func (s *nibbleReader) rest() arch.Addr {
	if s.high {
		return s.at + 1
	}
	return s.at
}
