package arch

// amd64AfterCall looks for a call of any length that ends right before a:
// e8 with 4 bytes, or ff /2, whose length its ModRM and SIB bytes give. A
// prefix before it changes nothing. Bytes that are missing rule out nothing.
func amd64AfterCall(mem Memory, a Addr) bool {
	const longest = 7 // without prefixes
	b := mem.View(a-longest, longest)
	if b == nil {
		return true
	}
	if b[longest-5] == 0xe8 {
		return true
	}
	for _, n := range [...]int{2, 3, 4, 6, 7} {
		if c := b[longest-n:]; c[0] == 0xff && c[1]>>3&7 == 2 && amd64ModRMLen(c[1:]) == n-1 {
			return true
		}
	}
	return false
}

// amd64ModRMLen returns how many bytes ModRM, SIB and displacement at the
// begin of b take. b holds at least 1 byte; a SIB byte that is missing counts
// as one without a displacement of its own.
func amd64ModRMLen(b []byte) int {
	mod, rm := b[0]>>6, b[0]&7
	if mod == 3 {
		return 1
	}
	n, base := 1, rm
	if rm == 4 {
		n = 2
		base = 0
		if len(b) > 1 {
			base = b[1] & 7
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && base == 5: // RIP-relative, or a SIB without base
		n += 4
	}
	return n
}
