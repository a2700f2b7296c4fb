package loader

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"unsafe"
)

// A LostError says that a file has lost bytes since it was opened: somebody has
// cut it, or its disk cannot read them.
type LostError struct {
	Path string // of the dump or the image file
	Off  int64  // in that file, from where on it cannot be read
	// Again says that the loss was not known before: the bytes are missing from
	// now on, and what was broken off may be tried again without them.
	Again bool
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s cannot be read at offset %#x any more: it was cut after it had been opened", e.Path, e.Off)
}

// mark notes how the first n bytes of the file end.
func (f *heldFile) mark(n int) {
	f.end = nil
	if n == 0 || f.unmap == nil {
		return
	}
	page := (n - 1) &^ int(pageMask)
	if !readable(&f.data[page]) {
		return // it is cut already, and the first read will tell
	}
	for n--; n > page && f.data[n] == 0; n-- {
	}
	f.end, f.has = &f.data[n], f.data[n]
}

// A lost is a range of addresses, of this program, where a file was mapped and
// cannot be read any more, [lo, hi).
type lost struct{ lo, hi uintptr }

// check returns an error if a file has lost bytes since there were so many
// losses. It is called where a fault is a panic.
func (h *held) check(losses uint32) error {
	if at := h.changed(); at != nil {
		if e := h.lose(uintptr(unsafe.Pointer(at))); e != nil {
			return e
		}
	}
	if h.losses.Load() != losses {
		return &LostError{Path: "a file of the process", Again: true}
	}
	return nil
}

// changed returns the last byte of a file that has another.
func (h *held) changed() *byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.files {
		if f := &h.files[i]; f.end != nil && *f.end != f.has {
			return f.end
		}
	}
	return nil
}

// A faulted is what the runtime panics with at a fault (debug.SetPanicOnFault).
type faulted interface {
	runtime.Error
	Addr() uintptr
}

// broken returns the error for what f in use has panicked with, nil if that was
// no fault in a file of h.
func (h *held) broken(r any) error {
	f, ok := r.(faulted)
	if !ok {
		return nil
	}
	if e := h.lose(f.Addr()); e != nil {
		return e
	}
	return nil
}

// faultAgain makes a fault a second time, if r is what the runtime panics with at
// one: without SetPanicOnFault it ends the program, and the trace that the program
// ends with still shows who read there first.
func faultAgain(r any) {
	if f, ok := r.(faulted); ok && f.Addr() >= 1<<12 {
		a := f.Addr()
		touch(*(**byte)(unsafe.Pointer(&a)))
	}
}

// lose notes what cannot be read any more of the file that is mapped at a, an
// address of this program; nil if none is.
func (h *held) lose(a uintptr) *LostError {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.files, func(f heldFile) bool {
		return f.unmap != nil && a-f.base() < (uintptr(len(f.data))+pageMask)&^pageMask
	})
	if i < 0 {
		return nil
	}
	f := &h.files[i]
	e := &LostError{Path: f.path, Off: int64((a - f.base()) &^ pageMask)}
	h.forget()
	if h.isLost(a) {
		return e
	}
	// A file that was cut has lost all that follows: where it ends is found by
	// halves. A page that its disk cannot read is one.
	page := int(pageMask + 1)
	first, end := int(e.Off), len(f.data)
	bad := func(k int) bool { return !readable(&f.data[k*page]) }
	switch pages := (len(f.data) + page - 1) / page; {
	case bad(pages - 1):
		first = sort.Search(first/page, bad) * page
		if st, err := os.Stat(f.path); err == nil && f.info != nil && os.SameFile(st, f.info) && st.Size() <= int64(first) {
			first = int(max(st.Size(), int64(first-page)))
		} else {
			first = max(first-page, 0) // it may end within that page
		}
	case bad(first / page):
		end = first + page
	}
	e.Off, e.Again = int64(first), true
	h.addLost(lost{f.base() + uintptr(first), f.base() + uintptr(end)})
	f.mark(first)
	h.losses.Add(1)
	if h.warn != nil {
		h.warn(e.Error())
	}
	return e
}

// pageMask is one less than the size of a page of this machine.
var pageMask = uintptr(os.Getpagesize() - 1)

// forget has Memory.Word take the long way, which asks what is lost.
func (h *held) forget() {
	h.set(heldLost)
	for _, m := range h.memories {
		for i := range m.hint {
			m.hint[i].Store(0)
		}
	}
}

// addLost notes a range, with h locked.
func (h *held) addLost(l lost) {
	var all []lost
	if old := h.lost.Load(); old != nil {
		all = slices.Clone(*old)
	}
	i := sort.Search(len(all), func(i int) bool { return all[i].hi >= l.lo })
	k := i
	for ; k < len(all) && all[k].lo <= l.hi; k++ {
		l.lo, l.hi = min(l.lo, all[k].lo), max(l.hi, all[k].hi)
	}
	all = slices.Replace(all, i, k, l)
	h.lost.Store(&all)
}

func (h *held) isLost(a uintptr) bool {
	all := h.lost.Load()
	if all == nil {
		return false
	}
	i := sort.Search(len(*all), func(i int) bool { return (*all)[i].hi > a })
	return i < len(*all) && (*all)[i].lo <= a
}

// whole returns the bytes at the begin of b, a part of a file, that can be read.
func (h *held) whole(b []byte) []byte {
	if h == nil || h.state.Load() == 0 || len(b) == 0 {
		return b
	}
	if h.closed() {
		return nil
	}
	all := h.lost.Load()
	if all == nil {
		return b
	}
	a := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i := sort.Search(len(*all), func(i int) bool { return (*all)[i].hi > a })
	switch {
	case i == len(*all):
	case (*all)[i].lo <= a:
		return nil
	case (*all)[i].lo-a < uintptr(len(b)):
		return b[: (*all)[i].lo-a : (*all)[i].lo-a]
	}
	return b
}

// readable reports whether the byte can be read.
func readable(p *byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	touch(p)
	return
}

// touch reads a byte.
//
//go:noinline
func touch(p *byte) byte { return *p }
