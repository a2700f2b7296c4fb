package loader

import (
	"errors"
	"fmt"
)

// ErrFormat is returned when a file is of no known format.
var ErrFormat = errors.New("not a dump of a known format")

// A FormatError says where a file breaks the rules of its format.
type FormatError struct {
	Off  int64
	What string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s, at offset %#x", e.What, e.Off) }

// Options change how a dump is opened. The zero value is fine.
type Options struct {
	Find   Finder // looks for image files that the dump does not hold; nil: none
	Limits Limits
	// Track makes the memory remember which bytes were read, for a trim.
	Track bool
}

// A Finder finds files by identity, not by name alone. Open calls it lazily,
// once an image, when bytes are needed that the dump does not hold.
type Finder interface {
	// Find returns candidates: paths of files that may be image id. The
	// loader checks their identity itself.
	Find(id ImageID, path string) []string
}

// Limits bound what a broken dump can make us do. Zero means the default.
type Limits struct {
	Threads, Images, Segments int
}

// Open opens the dump at path; "-" is standard input. The file is mapped, not
// read; a compressed one is unpacked to an unlinked temporary file first.
func Open(path string, opt *Options) (*Process, error) { return nil, ErrFormat }
