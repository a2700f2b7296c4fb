package bin

import (
	"encoding/binary"
	"unicode/utf16"
)

// UTF16 returns the text that b holds as UTF-16, little-endian. An odd last byte is
// none of it.
func UTF16(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}
