//go:build unix

package loader

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f, read-only. f may be closed after.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if size == 0 {
		return nil, func() error { return nil }, nil
	}
	if int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%s: %d bytes cannot be mapped on this machine", f.Name(), size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: mmap: %w", f.Name(), err)
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// release gives back the memory that pages of a mapped file take, which are
// read again when they are needed.
func release(b []byte) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(os.Getpagesize()-1))
	if n := (len(b) - skip) &^ (os.Getpagesize() - 1); n > 0 {
		unix.Madvise(b[skip:skip+n], unix.MADV_DONTNEED)
	}
}
