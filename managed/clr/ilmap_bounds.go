package clr

import "github.com/seamwalk/seam/arch"

// A mapping is an entry of a map: from its native offset on, up to that of the next
// entry, code was compiled from IL at il, or is special (see firstSpecialIL).
type mapping struct {
	native uint64
	il     uint32
	call   bool // it is of a call alone, beside the other entries (ICorDebugInfo::CALL_INSTRUCTION)
}

// read calls yield with the entries of a map, by native offset, until it
// returns false. It reports whether b has the form: the counts that it claims
// take exactly its bytes. Nothing else tells the forms apart, so that is
// checked before the first entry is believed.
func (f boundsForm) read(b []byte, yield func(mapping) bool) bool {
	if f == boundsNibbles {
		return readNibbles(b, nil) && readNibbles(b, yield)
	}
	return readBits(b, uint(f), yield)
}

// ilBias is added to an IL offset, so that the special ones are small.
const ilBias = 3

// callInstruction is the bit of an entry's source that says that the entry is of a
// call (ICorDebugInfo::SourceTypes, src/coreclr/inc/cordebuginfo.h). As bits, it is
// the first one (DoBounds, src/coreclr/vm/debuginfostore.cpp of 10.0).
const callInstruction = 0x10

// readNibbles reads the form of .NET 9 and older: a count, then for each entry
// the native offset from the last, the IL offset and the source.
func readNibbles(b []byte, yield func(mapping) bool) bool {
	s := nibbleReader{b: b}
	count := s.number()
	if uint64(count) > 2*uint64(len(b)) {
		return false
	}
	native := uint64(0)
	for range count {
		native += uint64(s.number())
		il := s.number() - ilBias
		source := s.number()
		if s.bad {
			return false
		}
		if yield != nil && !yield(mapping{native, il, source&callInstruction != 0}) {
			return true
		}
	}
	return yield != nil || !s.bad && s.rest() == arch.Addr(len(b))
}

// readBits reads the form of .NET 10 and later: a count and the widths of
// native and IL offsets as nibbles, then from the next byte on a stream of
// bits, the lowest first: source, native offset from the last, IL offset.
func readBits(b []byte, source uint, yield func(mapping) bool) bool {
	s := nibbleReader{b: b}
	count, nativeBits, ilBits := s.number(), s.number()+1, s.number()+1
	if s.bad || nativeBits > 32 || ilBits > 32 {
		return false
	}
	b = b[s.rest():]
	width := source + uint(nativeBits) + uint(ilBits)
	if uint64(len(b)) != (uint64(count)*uint64(width)+7)/8 {
		return false
	}
	native := uint64(0)
	for i := range uint(count) {
		at := i*width + source
		native += bitsAt(b, at, uint(nativeBits))
		il := uint32(bitsAt(b, at+uint(nativeBits), uint(ilBits))) - ilBias
		if !yield(mapping{native, il, bitsAt(b, i*width, 1) != 0}) {
			return true
		}
	}
	return true
}

// bitsAt returns n bits of b from bit at on, n at most 32.
func bitsAt(b []byte, at, n uint) (v uint64) {
	for i := at / 8; i*8 < at+n; i++ {
		if i*8 >= at {
			v |= uint64(b[i]) << (i*8 - at)
		} else {
			v |= uint64(b[i]) >> (at - i*8)
		}
	}
	return v & (1<<n - 1)
}
