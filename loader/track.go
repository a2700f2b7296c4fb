package loader

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
)

// pageSize is the granularity of what a trimmed dump keeps.
const pageSize = 4096

// A pageSet remembers pages that were read. A walk reads the same few pages
// over and over, so a small table of pages already seen keeps most calls away
// from the lock.
type pageSet struct {
	seen  [1024]atomic.Uint64 // page number + 1
	mu    sync.Mutex
	pages map[uint64]struct{}
	link  map[linkKey][]byte
}

// A linkKey is a read of an image's link-time bytes, which are no memory of
// the process and are kept apart.
type linkKey struct {
	img *Image
	at  arch.Addr
	n   int
}

// linkTime remembers that b was what FileView gave for a.
func (s *pageSet) linkTime(m *Image, a arch.Addr, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := (linkKey{m, a, len(b)}); s.link[k] == nil {
		s.link[k] = append([]byte(nil), b...)
	}
}

func newPageSet() *pageSet { return &pageSet{pages: map[uint64]struct{}{}, link: map[linkKey][]byte{}} }

// add remembers the pages of the n bytes at a.
func (s *pageSet) add(a arch.Addr, n int) {
	if n <= 0 {
		return
	}
	for p, last := uint64(a)/pageSize, (uint64(a)+uint64(n)-1)/pageSize; p <= last; p++ {
		slot := &s.seen[p%uint64(len(s.seen))]
		if slot.Load() == p+1 {
			continue
		}
		s.mu.Lock()
		s.pages[p] = struct{}{}
		s.mu.Unlock()
		slot.Store(p + 1)
	}
}

// spans returns the pages as runs, in order.
func (s *pageSet) spans() []arch.Span {
	s.mu.Lock()
	pages := make([]uint64, 0, len(s.pages))
	for p := range s.pages {
		pages = append(pages, p)
	}
	s.mu.Unlock()
	slices.Sort(pages)
	var out []arch.Span
	for _, p := range pages {
		lo := arch.Addr(p * pageSize)
		if k := len(out); k > 0 && out[k-1].Hi == lo {
			out[k-1].Hi += pageSize
		} else {
			out = append(out, arch.Span{Lo: lo, Hi: lo + pageSize})
		}
	}
	return out
}
