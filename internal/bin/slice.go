package bin

import "bytes"

// Slice returns data[off:off+n], or nil when data does not hold all of it.
func Slice(data []byte, off, n uint64) []byte {
	if off > uint64(len(data)) || n > uint64(len(data))-off {
		return nil
	}
	return data[off : off+n : off+n]
}

// CString returns the zero-terminated string at off of data, or "" when it has
// no end.
func CString(data []byte, off uint64) string {
	if off >= uint64(len(data)) {
		return ""
	}
	data = data[off:]
	if n := bytes.IndexByte(data, 0); n >= 0 {
		return string(data[:n])
	}
	return ""
}
