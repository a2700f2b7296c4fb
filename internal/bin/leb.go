package bin

// ULEB reads the unsigned LEB128 number (DWARF 5, section 7.6) that b begins
// with, and says how many bytes it has. Bits beyond the 64th are dropped:
// assemblers pad with them. ok is false when b ends before the number does.
func ULEB(b []byte) (v uint64, n int, ok bool) {
	shift := uint(0)
	for i, c := range b {
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		shift += 7
		if c&0x80 == 0 {
			return v, i + 1, true
		}
	}
	return 0, 0, false
}

// SLEB is ULEB for a signed number.
func SLEB(b []byte) (v int64, n int, ok bool) {
	u, n, ok := ULEB(b)
	if ok && b[n-1]&0x40 != 0 && 7*n < 64 {
		u |= ^uint64(0) << (7 * n)
	}
	return int64(u), n, ok
}
