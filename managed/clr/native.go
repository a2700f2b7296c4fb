package clr

import "github.com/seamwalk/seam/arch"

// A nativeArray is a sparse array of the native format: a header, offsets of
// blocks of 16 elements, and in each block a tree over the index's four low
// bits (src/coreclr/vm/nativeformatreader.h).
type nativeArray struct {
	r  *Runtime
	at arch.Addr
}

const nativeBlock = 16

// find returns where element i lies; not ok if the array has none.
func (a nativeArray) find(i uint32) (arch.Addr, bool) {
	head, base, ok := a.r.nativeNumber(a.at)
	if !ok || i >= head>>2 {
		return 0, false
	}
	// The two low bits say how many bytes the offsets have.
	width := 1 << (head & 3)
	b := a.r.linked(base+arch.Addr(int(i/nativeBlock)*width), width)
	if b == nil || width > 4 {
		return 0, false
	}
	at := base + arch.Addr(leN(b))
	for bit := uint32(nativeBlock / 2); bit > 0; bit >>= 1 {
		v, next, ok := a.r.nativeNumber(at)
		if !ok {
			return 0, false
		}
		switch {
		case i&bit != 0 && v&2 != 0:
			at += arch.Addr(v >> 2)
		case i&bit == 0 && v&1 != 0:
			at = next
		case v&3 == 0 && v>>2 == i%nativeBlock:
			return next, true // the only element of its part of the tree
		default:
			return 0, false
		}
	}
	return at, true
}

// nativeNumber reads an unsigned number of the native format, whose first byte
// says by its low bits how many there are, and returns where the next begins.
func (r *Runtime) nativeNumber(a arch.Addr) (v uint32, next arch.Addr, ok bool) {
	c, ok := r.linkedByte(a)
	if !ok {
		return 0, a, false
	}
	n := 1
	for c>>(n-1)&1 != 0 {
		if n++; n > 5 {
			return 0, a, false
		}
	}
	b := r.linked(a, n)
	if b == nil {
		return 0, a, false
	}
	if n == 5 {
		return le32(b[1:]), a + 5, true
	}
	return leN(b) >> n, a + arch.Addr(n), true
}

// nativeSigned reads a signed number of the native format.
func (r *Runtime) nativeSigned(a arch.Addr) (v int32, next arch.Addr, ok bool) {
	u, next, ok := r.nativeNumber(a)
	if bits := 7 * int(next-a); bits < 32 {
		return int32(u<<(32-bits)) >> (32 - bits), next, ok
	}
	return int32(u), next, ok
}

// A nativeTable is a hash table of the native format: a byte with the number of
// buckets and the size of offsets, the offsets at which the buckets begin and
// end, and in each bucket for each entry a byte of its hash and how far away the
// entry lies (NativeHashtable of the same file).
type nativeTable struct {
	r    *Runtime
	at   arch.Addr
	size uint32 // of the section that it lies in, in bytes
}

// entries yields where each entry lies, as many as can be read, and in which
// bucket.
func (t nativeTable) entries(yield func(bucket uint32, at arch.Addr)) {
	head, ok := t.r.linkedByte(t.at)
	if !ok || head>>2 > maxBuckets || t.size>>(head>>2) == 0 { // a bucket has a byte at least
		return
	}
	left := maxEntries
	for i := range uint32(1) << (head >> 2) {
		t.bucket(i, func(at arch.Addr) bool {
			left--
			yield(i, at)
			return left > 0
		})
	}
}

// Bounds of a table: its entries, and the logarithm of the number of its buckets.
// The framework's own library has 20,000 instantiations.
const (
	maxBuckets = 18
	maxEntries = 1 << 20
)

// bucket yields where each entry of a bucket lies, until yield returns false.
func (t nativeTable) bucket(i uint32, yield func(at arch.Addr) bool) {
	head, ok := t.r.linkedByte(t.at)
	width := arch.Addr(1) << (head & 3)
	base := t.at + 1
	b := t.r.linked(base+arch.Addr(i)*width, int(2*width))
	if !ok || width > 4 || b == nil {
		return
	}
	at, end := base+arch.Addr(leN(b[:width])), base+arch.Addr(leN(b[width:]))
	for at < end {
		away, next, ok := t.r.nativeSigned(at + 1)
		if !ok || !yield(at+1+arch.Addr(int64(away))) {
			return
		}
		at = next
	}
}

// leN reads a number of up to four bytes.
func leN(b []byte) (v uint32) {
	for k, c := range b {
		v |= uint32(c) << (8 * k)
	}
	return v
}
