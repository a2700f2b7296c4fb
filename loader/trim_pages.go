package loader

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
)

// pageSize is the granularity of what a trimmed dump keeps.
const pageSize = 4096

// A pageSet remembers pages that were read, and which words of them. A walk
// reads the same few pages over and over, so a small table of pages already
// seen keeps most calls away from the lock.
type pageSet struct {
	seen  [1024]atomic.Pointer[readPage]
	mu    sync.Mutex
	pages map[uint64]*readPage
	link  map[linkKey][]byte
}

// A readPage has a bit for each word of a page that was read.
type readPage struct {
	number uint64
	words  [pageSize / 8 / 64]atomic.Uint64
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

func newPageSet() *pageSet {
	return &pageSet{pages: map[uint64]*readPage{}, link: map[linkKey][]byte{}}
}

// page returns a page of the set, or nil if nothing of it was read.
func (s *pageSet) page(number uint64) *readPage {
	if p := s.seen[number%uint64(len(s.seen))].Load(); p != nil && p.number == number {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages[number]
}

// newPage returns a page of the set, and puts it there if it is not.
func (s *pageSet) newPage(number uint64) *readPage {
	slot := &s.seen[number%uint64(len(s.seen))]
	if p := slot.Load(); p != nil && p.number == number {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[number]
	if p == nil {
		p = &readPage{number: number}
		s.pages[number] = p
	}
	slot.Store(p)
	return p
}

// add remembers the n bytes at a.
func (s *pageSet) add(a arch.Addr, n int) {
	if n <= 0 {
		return
	}
	for w, last := uint64(a)/8, (uint64(a)+uint64(n)-1)/8; w <= last; {
		p := s.newPage(w / (pageSize / 8))
		for end := (p.number + 1) * (pageSize / 8); w < end && w <= last; w++ {
			bits, bit := &p.words[w%(pageSize/8)/64], uint64(1)<<(w%64)
			if bits.Load()&bit == 0 {
				bits.Or(bit)
			}
		}
	}
}

// has reports whether the word that a lies in was read.
func (s *pageSet) has(a arch.Addr) bool {
	p := s.page(uint64(a) / pageSize)
	w := uint64(a) % pageSize / 8
	return p != nil && p.words[w/64].Load()>>(w%64)&1 != 0
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

// Constant returns the n bytes at a, which the process cannot have changed, of
// memory or else of the image's file; nil if neither has them. A trimmed core
// has them in a note, without the pages around them.
func (m *Image) Constant(a arch.Addr, n int) []byte {
	b := m.mem.Untracked().View(a, n)
	if b == nil {
		return m.FileView(a, n)
	}
	if m.mem.track != nil {
		m.mem.track.linkTime(m, a, b)
	}
	return b
}

// linkRuns returns the link-time bytes that were read of an image, as runs.
func (s *pageSet) linkRuns(m *Image) []linkRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []linkRun
	for k, b := range s.link {
		if k.img == m {
			all = append(all, linkRun{k.at, b})
		}
	}
	slices.SortFunc(all, func(a, b linkRun) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -cmp.Compare(len(a.b), len(b.b)))
	})
	var out []linkRun
	for _, r := range all {
		if k := len(out) - 1; k >= 0 {
			// What overlaps or follows joins: both are the same bytes.
			if end := out[k].at + arch.Addr(len(out[k].b)); r.at <= end {
				if skip := uint64(end - r.at); skip < uint64(len(r.b)) {
					out[k].b = append(slices.Clip(out[k].b), r.b[skip:]...)
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
