package ecma

import (
	"bytes"
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// signature is "BSJB", what the metadata root begins with (II.24.2.1).
const signature = 0x424a5342

// Limits on what the root may claim: stream names have at most 32 bytes and the
// version at most 255 (II.24.2.1, II.24.2.2).
const (
	maxStreams    = 64
	maxVersion    = 255
	maxStreamName = 32
)

// A Stream is a part of metadata: a heap, or the tables.
type Stream struct {
	Name      string // "#Strings", "#~"
	Off, Size uint32 // in bytes; Off counts from the root
}

// Streams reads the root of metadata at at, which has size bytes, and returns its
// streams. Where a header is missing or broken, they are those before it.
func Streams(r objfile.Reader, at arch.Addr, size uint32) ([]Stream, error) {
	head := r.View(at, 16)
	if head == nil {
		return nil, &Error{"the metadata root", at, true}
	}
	version := binary.LittleEndian.Uint32(head[12:])
	if size < 20 || binary.LittleEndian.Uint32(head) != signature || version > maxVersion+1 {
		return nil, &Error{"the metadata root", at, false}
	}
	list := at + 16 + arch.Addr(version+3)&^3
	b := r.View(list, 4)
	if b == nil {
		return nil, &Error{"the list of metadata streams", list, true}
	}
	n := binary.LittleEndian.Uint16(b[2:])
	if n > maxStreams {
		return nil, &Error{"the list of metadata streams", list, false}
	}
	streams := make([]Stream, 0, n)
	for pos := list + 4; len(streams) < int(n); {
		s, used, err := stream(r, pos, size)
		if err != nil {
			return streams, err
		}
		streams = append(streams, s)
		pos += used
	}
	return streams, nil
}

// stream reads the stream header at a (II.24.2.2) and says how many bytes it has:
// its name is padded to a multiple of four.
func stream(r objfile.Reader, a arch.Addr, size uint32) (s Stream, used arch.Addr, err error) {
	b := r.View(a, 8)
	if b == nil {
		return s, 0, &Error{"a metadata stream header", a, true}
	}
	s = Stream{Off: binary.LittleEndian.Uint32(b), Size: binary.LittleEndian.Uint32(b[4:])}
	if s.Off > size || s.Size > size-s.Off {
		return s, 0, &Error{"a metadata stream header", a, false}
	}
	for used = 8; used < 8+maxStreamName; {
		part := r.View(a+used, 4)
		if part == nil {
			return s, 0, &Error{"a metadata stream header", a, true}
		}
		used += 4
		if i := bytes.IndexByte(part, 0); i >= 0 {
			s.Name += string(part[:i])
			return s, used, nil
		}
		s.Name += string(part)
	}
	return s, 0, &Error{"a metadata stream header", a, false}
}
