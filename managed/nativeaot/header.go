package nativeaot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// headerSymbol is exported by every program and library that NativeAOT makes
// (src/coreclr/nativeaot/Runtime/DebugHeader.cpp).
const headerSymbol = "DotNetRuntimeDebugHeader"

// The header and the two arrays that it leads to, 64-bit. The program fills them
// as it starts; the entry whose first word is null is the last.
const (
	headerSize    = 32
	headerMajorAt = 4
	headerFlags   = 8
	headerTypes   = 16
	headerGlobals = 24

	headerCookie = "DNDH"
	headerMajor  = 4 // of .NET 8 to 10
	flagWide     = 1 // pointers have 8 bytes
	flagBig      = 2 // the machine is big-endian

	typeEntry   = 24 // type's name, field's name, offset of 4 bytes, padding
	globalEntry = 16 // name, address

	maxEntries = 1 << 10
	maxName    = 128
)

// A header is what the debug header says.
type header struct {
	fields  map[string]int       // offsets in bytes, by "Type.field"; "Type.SIZEOF" is a size
	globals map[string]arch.Addr // addresses, by name
}

// readHeader reads the debug header at a of mem. constant has the texts at
// addresses, "" where they are not at hand.
func readHeader(mem arch.Memory, a arch.Addr, constant func(uint64) string) (*header, error) {
	b := mem.View(a, headerSize)
	if b == nil {
		return nil, fmt.Errorf("the dump lacks its debug header at %v", a)
	}
	major, flags := binary.LittleEndian.Uint16(b[headerMajorAt:]), binary.LittleEndian.Uint32(b[headerFlags:])
	if string(b[:len(headerCookie)]) != headerCookie {
		return nil, fmt.Errorf("its debug header at %v has no magic number", a)
	}
	if major != headerMajor || flags&(flagWide|flagBig) != flagWide {
		return nil, fmt.Errorf("its debug header at %v is of version %d with flags %#x, which this program does not know", a, major, flags)
	}
	h := &header{fields: map[string]int{}, globals: map[string]arch.Addr{}}
	read := func(at uint64, size arch.Addr, entry func(name string, b []byte) bool) error {
		if at == 0 {
			return fmt.Errorf("its debug header at %v has not been filled", a)
		}
		for i := range arch.Addr(maxEntries) {
			e := mem.View(arch.Addr(at)+i*size, int(size))
			if e == nil {
				return fmt.Errorf("the dump lacks a part of its debug header, at %v", arch.Addr(at)+i*size)
			}
			name := binary.LittleEndian.Uint64(e)
			if name == 0 {
				return nil
			}
			if !entry(constant(name), e) {
				return fmt.Errorf("the names in its debug header are not at hand, at %v; --images with a folder that holds this file would supply them", arch.Addr(name))
			}
		}
		return fmt.Errorf("its debug header at %v has no end", a)
	}
	err := read(binary.LittleEndian.Uint64(b[headerTypes:]), typeEntry, func(name string, b []byte) bool {
		f := constant(binary.LittleEndian.Uint64(b[8:]))
		h.fields[name+"."+f] = int(binary.LittleEndian.Uint32(b[16:]))
		return name != "" && f != ""
	})
	if err != nil {
		return nil, err
	}
	return h, read(binary.LittleEndian.Uint64(b[headerGlobals:]), globalEntry, func(name string, b []byte) bool {
		h.globals[name] = arch.Addr(binary.LittleEndian.Uint64(b[8:]))
		return name != ""
	})
}

// textAt returns the text at a, which ends with a zero and lies in memory of
// img that nobody writes to; "" if it is not at hand, or too long.
func textAt(img *loader.Image, a uint64) string {
	var s []byte
	for len(s) < maxName {
		const step = 16 // up to the next multiple, which no page ends in front of
		n := step - int(a%step)
		b := img.Constant(arch.Addr(a), n)
		if b == nil {
			return ""
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(append(s, b[:end]...))
		}
		s = append(s, b...)
		a += uint64(n)
	}
	return ""
}
