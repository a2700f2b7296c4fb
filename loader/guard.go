package loader

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ErrClosed is the error of using a process that has been closed.
var ErrClosed = errors.New("the process has been closed")

// A heldFile is a file while a process is read from it.
type heldFile struct {
	path  string
	info  os.FileInfo
	data  []byte
	unmap func() error // nil: data is a copy in memory
	end   *byte        // the last byte that is not 0, or the first of the last page
	has   byte         // what it was
}

// base returns where the file is mapped.
func (f *heldFile) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(f.data))) }

// A held is all the files that a process is read from. Bytes of mapped files are
// read in place, all over Seam, and two things can take them away: Close, and
// somebody who cuts the file. The kernel answers a read of such a byte with a
// signal, which ends a Go program for good: no recover helps. This type is the
// one place that deals with both.
//
// Close: who uses the files is counted, by use. Once the process is closed, reads
// of its Memory find nothing, so that walks end soon; and when the last user has
// left, the mappings are replaced by empty ones, which cost an address range and
// nothing else. These go when the garbage collector finds that nobody has the
// process any more. So a read that no use counts finds an empty page, and not a
// hole, or another file: Memory.Word looks behind its read whether the process
// has been closed meanwhile, and says then that the word is missing.
//
// A cut file: within use, a fault is a panic (debug.SetPanicOnFault), that use
// recovers from if the address is in one of the process's mappings. What cannot
// be read is noted, and missing from then on; what was under way is broken off.
// Slices that were taken before stay dangerous: reading them is a fault again,
// so they are never zero instead of missing. A fault anywhere else ends the
// program as it always did.
//
// Of the page that a file ends in after it was cut, the rest reads as zeros, and
// is no fault. So use looks at its end whether each file still has its last byte
// that is not zero. If not, and if another goroutine has noticed a loss meanwhile,
// what was read may have been such zeros, and does not count.
type held struct {
	state  atomic.Uint32
	lost   atomic.Pointer[[]lost] // by address
	losses atomic.Uint32          // counts what has been noted in lost

	inMemory bool      // files are read, not mapped
	limit    int64     // bytes of one file, if inMemory
	memories []*Memory // of the process
	warn     func(text string)

	mu      sync.Mutex
	users   int
	files   []heldFile
	closers []func() error
	done    bool // the files have been released
}

// newHeld returns what holds the files of a process that is opened so.
func newHeld(o *Options) *held { return &held{inMemory: o.InMemory, limit: o.Limits.InMemory} }

// Bits of held.state.
const (
	heldClosed = 1 << iota
	heldLost
)

func (h *held) closed() bool { return h != nil && h.state.Load()&heldClosed != 0 }

// open maps or reads the first size bytes of f, which may be closed after. info,
// of f, may be nil.
func (h *held) open(f *os.File, info os.FileInfo, size int64) (data []byte, err error) {
	file := heldFile{path: f.Name(), info: info}
	if h.inMemory {
		file.data, err = readFile(f, h.limit)
	} else {
		file.data, file.unmap, err = mapFile(f, size)
	}
	if err != nil || len(file.data) == 0 {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		if file.unmap != nil {
			file.unmap()
		}
		return nil, ErrClosed
	}
	file.mark(len(file.data))
	h.files = append(h.files, file)
	return file.data, nil
}

// readFile reads all of f, up to limit bytes.
func readFile(f io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it has more than %d bytes, the limit for what is read into memory", limit)
	}
	return data, err
}

// onClose has f called when the files are released.
func (h *held) onClose(f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closers = append(h.closers, f)
}

// drop releases a file that was opened and is not needed. Nobody may have a
// slice of it.
func (h *held) drop(data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.files, func(f heldFile) bool { return unsafe.SliceData(f.data) == unsafe.SliceData(data) })
	if h.done || i < 0 {
		return
	}
	if u := h.files[i].unmap; u != nil {
		u()
	}
	h.files = slices.Delete(h.files, i, i+1)
}

// close has the files released: now, or when the last user leaves.
func (h *held) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(heldClosed)
	if h.users > 0 {
		return nil
	}
	return h.release()
}

// release releases the files, with h locked.
func (h *held) release() error {
	if h.done {
		return nil
	}
	h.done = true
	var errs []error
	for _, f := range h.files {
		if f.unmap == nil {
			continue // the garbage collector's
		}
		errs = append(errs, empty(f.data))
		runtime.AddCleanup(h, func(unmap func() error) { unmap() }, f.unmap)
	}
	for _, c := range h.closers {
		errs = append(errs, c())
	}
	h.files, h.closers = nil, nil
	return errors.Join(errs...)
}

func (h *held) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done || h.closed() {
		return false
	}
	h.users++
	return true
}

func (h *held) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.users == 0 && h.closed() {
		h.release()
	}
}

// use runs f, which may read the files.
func (h *held) use(f func()) (err error) {
	if !h.enter() {
		return ErrClosed
	}
	defer h.leave()
	old := debug.SetPanicOnFault(true)
	defer func() {
		// Behind f's own deferred calls; from here on nothing is read.
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			if err = h.broken(r); err == nil {
				if !old {
					faultAgain(r)
				}
				panic(r) // it is not ours
			}
		}
	}()
	losses := h.losses.Load()
	f()
	return h.check(losses)
}

// has adds a memory, whose words lie in the files of h.
func (h *held) has(m *Memory) { h.memories = append(h.memories, m) }

// set sets a bit of the state, also that of the memories.
func (h *held) set(bit uint32) {
	h.state.Or(bit)
	for _, m := range h.memories {
		m.state.Or(bit)
	}
}

// Guard runs f, which may read the process and whatever came from it, and
// protects this program from two things that would end it, while f runs on this
// goroutine:
//
// Close. It does not take away what f reads: the files are released when f has
// returned. Reads of Memory find nothing from then on. If the process has been
// closed before, f is not called, and Guard returns [ErrClosed].
//
// A dump or image file that is cut while it is open. Where f reads a byte that is
// gone, f is left by a panic, its deferred calls run, and Guard returns a
// [*LostError]. The byte is missing from then on, as if the dump had never had
// it: f may be called again. But slices that were taken before (of View, Slice
// and Section) still lead there.
//
// A panic that has another cause goes on; a fault at another address ends the
// program, as without Guard. Guards may be nested. One protects its goroutine
// only: those that f starts need one each.
//
// Walks, snapshots and seeds of package managed guard themselves. Who calls
// methods of [Memory] and [Image] directly is safe from Close without Guard, and
// needs it, or Options.InMemory, against files that are cut.
func (p *Process) Guard(f func()) error {
	if p.held == nil {
		f()
		return nil
	}
	return p.held.use(f)
}

// maxLosses bounds how often GuardRetry begins again.
const maxLosses = 64

// GuardRetry is Guard, and calls f again from its begin when a file has turned
// out to have lost bytes, which are missing then. The error is a [*LostError] if
// f cannot do without.
func (p *Process) GuardRetry(f func()) (err error) {
	for known, n := 0, 0; known < 2 && n < maxLosses; n++ {
		err = p.Guard(f)
		if _, lost := err.(*LostError); !lost {
			return err
		}
		if !err.(*LostError).Again {
			known++
		}
	}
	return err
}
