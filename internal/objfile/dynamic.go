package objfile

import (
	"debug/elf"
	"iter"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// Tags of a dynamic section that debug/elf does not name (gABI, chapter 5;
// DT_RELACOUNT is GNU's).
const (
	dtRelrSz    elf.DynTag = 35
	dtRelr      elf.DynTag = 36
	dtRelaCount elf.DynTag = 0x6ffffff9
)

// maxDynamic bounds the entries of a dynamic section. Programs have some thirty,
// and one more for each library that they need.
const maxDynamic = 1 << 12

// Dynamic yields the tags and values of the dynamic section at a (gABI, chapter
// 5), until DT_NULL or an entry that is missing.
func Dynamic(r Reader, a arch.Addr) iter.Seq2[elf.DynTag, uint64] {
	return func(yield func(elf.DynTag, uint64) bool) {
		for range maxDynamic {
			b := r.View(a, 16)
			if b == nil {
				return
			}
			tag := elf.DynTag(le64(b))
			if tag == elf.DT_NULL || !yield(tag, le64(b[8:])) {
				return
			}
			a += 16
		}
	}
}

// DynamicTag returns the value of the first entry with the tag in the dynamic
// section at a, or 0.
func DynamicTag(r Reader, a arch.Addr, tag elf.DynTag) uint64 {
	for t, v := range Dynamic(r, a) {
		if t == tag {
			return v
		}
	}
	return 0
}

// Bytes is a Reader of bytes that begin at address 0, as of a file: an address
// is an offset then.
type Bytes []byte

// View returns the n bytes at offset a, or nil.
func (b Bytes) View(a arch.Addr, n int) []byte {
	if n < 0 {
		return nil
	}
	return bin.Slice(b, uint64(a), uint64(n))
}
