//go:build unix

package loader

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f, read-only. f may be closed after.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if size == 0 {
		return nil, nil, nil
	}
	if int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%s: %d bytes cannot be mapped on this machine", f.Name(), size)
	}
	data, err := mmap(f, int(size))
	if errors.Is(err, unix.ENOMEM) {
		// What has been closed keeps its addresses until it is collected.
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // cleanups run on a goroutine of their own
		data, err = mmap(f, int(size))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: mmap: %w", f.Name(), err)
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// mmap maps f. It asks for the descriptor in the way that leaves the file's mode as
// it is: File.Fd makes it blocking, by two more system calls.
func mmap(f *os.File, size int) (data []byte, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	err2 := c.Control(func(fd uintptr) {
		data, err = unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	})
	return data, errors.Join(err, err2)
}

// empty puts pages of zeros where a file is mapped. They cost addresses and no
// memory, and a read of them is no fault.
func empty(data []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(data)), uintptr(len(data)),
		unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}

// release gives back the memory that pages of a mapped file take, which are
// read again when they are needed.
func release(b []byte) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(os.Getpagesize()-1))
	if n := (len(b) - skip) &^ (os.Getpagesize() - 1); n > 0 {
		unix.Madvise(b[skip:skip+n], unix.MADV_DONTNEED)
	}
}
