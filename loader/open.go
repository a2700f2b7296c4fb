package loader

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seamwalk/seam/internal/objfile"
)

// ErrFormat is returned when a file is of no known format.
var ErrFormat = errors.New("not a dump of a known format")

// A FormatError says where a file breaks the rules of its format.
type FormatError struct {
	Off  int64
	What string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s, at offset %#x", e.What, e.Off) }

// formatError returns an error of package objfile as this package's.
func formatError(err error) error {
	if e, ok := errors.AsType[*objfile.FormatError](err); ok {
		return &FormatError{e.Off, e.What}
	}
	return err
}

// Options change how a dump is opened. The zero value is fine.
type Options struct {
	Find   Finder // looks for image files that the dump does not hold; nil: none
	Limits Limits
	// Track makes the memory remember which bytes were read, for a trim.
	Track bool
	// InMemory has the dump and the image files read into memory, whole, instead
	// of mapped: who may cut them while they are open cannot do harm then (see
	// [Process.Guard]), and slices of memory can be used after Close. A packed
	// dump is unpacked to memory.
	InMemory bool

	held *held
}

// A Finder finds files by identity, not by name alone. The loader asks it
// lazily, once an image, when bytes are needed that the dump does not hold.
// It may be asked by several goroutines at once.
type Finder interface {
	// Find returns candidates: paths of files that may be image id. The
	// loader checks their identity itself. path is the one in the dump, or ""
	// for a separate file of debugging information, of which id.Name is the name
	// that .gnu_debuglink gives and id.BuildID the image's. What lies beside the
	// image's file, or in .debug beside it, the loader finds by itself.
	Find(id ImageID, path string) []string
}

// Limits bound what a broken dump can make us do. Zero means the default.
type Limits struct {
	Threads, Images, Segments int
	Unpacked                  int64 // bytes that a compressed dump may unpack to
	InMemory                  int64 // bytes of one file that Options.InMemory may read; a larger one is not opened
}

func (l Limits) withDefaults() Limits {
	// A process can have 65,530 mappings by default (vm.max_map_count) and
	// four million threads (PID_MAX_LIMIT); nothing real comes near these.
	for _, f := range []struct {
		p *int
		v int
	}{{&l.Threads, 1 << 20}, {&l.Images, 1 << 16}, {&l.Segments, 1 << 22}} {
		if *f.p <= 0 {
			*f.p = f.v
		}
	}
	if l.Unpacked <= 0 {
		l.Unpacked = 1 << 40
	}
	if l.InMemory <= 0 {
		l.InMemory = 1 << 32
	}
	return l
}

// A format is a kind of dump: how to know it by its first bytes, and how to
// open it. open gets the whole file, mapped. It makes a process by newProcess and
// fills in its memory (Memory.lists and Memory.holds), its threads and its images
// (newImageList); Path and Format are Open's business, and so is what Options say
// of all formats.
type format struct {
	name string
	is   func(head []byte) bool
	open func(data []byte, opt Options) (*Process, error)
}

// formats lists the kinds of dump, in the order of asking. A new one is a file
// of its own and a line here. It is not for programs that import the package to
// extend: what a format fills in, memory and images, would have to be promised
// to them first.
var formats = []format{
	{"elf-core", isELFCore, openELFCore},
}

// Open opens the dump at path; "-" is standard input. The file is mapped, not
// read; a compressed one is unpacked to an unlinked temporary file first. The
// error wraps [ErrFormat] or is a [*FormatError] when the file is no dump; what
// is merely cut short or missing becomes a [Warning].
func Open(path string, opt *Options) (*Process, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.Limits = o.Limits.withDefaults()
	o.held = newHeld(&o)
	data, damage, err := mapDump(path, &o)
	if err != nil {
		o.held.close()
		return nil, err
	}
	var p *Process
	size := len(data)
	for lost := (*LostError)(nil); ; {
		// A file that is cut while its headers are read is one that was cut.
		broken := o.held.use(func() { p, err = openBytes(path, o.held.whole(data), o) })
		if errors.As(broken, &lost) && lost.Again {
			continue
		}
		if err = cmp.Or(broken, err); err == nil {
			break
		}
		if damage != nil {
			err = fmt.Errorf("%w (%v: %d bytes are all that it gave)", err, damage, size)
		}
		o.held.close()
		return nil, err
	}
	if damage != nil {
		p.warn("packing_damaged", int64(size), "%v; its first %d bytes were unpacked, and are read", damage, size)
	}
	return p, nil
}

// openBytes opens a dump that lies in data.
func openBytes(path string, data []byte, opt Options) (*Process, error) {
	if opt.held == nil {
		opt.held = newHeld(&opt)
	}
	for _, f := range formats {
		if !f.is(data) {
			continue
		}
		p, err := f.open(data, opt)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.name, err)
		}
		p.Path, p.Format = path, f.name
		if opt.Track {
			// Only now: what opening learns of the images a trimmed core has in
			// notes, and the page with the program's path often has the
			// environment's strings too.
			p.Memory.remember()
		}
		return p, nil
	}
	return nil, fmt.Errorf("%s: %w: %s", path, ErrFormat, guess(data))
}

// guess says what a file that is no dump seems to be, because the usual
// mistake is to pass the executable, or a dump packed by something else.
func guess(data []byte) string {
	switch {
	case len(data) == 0:
		return "the file is empty"
	case bytes.HasPrefix(data, []byte("\x7fELF")) && len(data) >= 18:
		switch t := binary.LittleEndian.Uint16(data[16:]); t {
		case 2, 3:
			return "it is an ELF program or library, not a core"
		default:
			return fmt.Sprintf("it is an ELF file of type %d, not a core (4)", t)
		}
	case bytes.HasPrefix(data, []byte("MDMP")):
		return "it is a Windows minidump, which is not among the formats that can be read"
	case bytes.HasPrefix(data, []byte("MZ")):
		return "it is a PE program or library"
	case bytes.HasPrefix(data, []byte("\xfd7zXZ")):
		return "it is packed with xz; unpack it first (zstd and gzip are unpacked as they are)"
	case bytes.HasPrefix(data, []byte("BZh")):
		return "it is packed with bzip2; unpack it first (zstd and gzip are unpacked as they are)"
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return "it is a zip archive; unpack it first"
	case bytes.HasPrefix(data, []byte("PAGEDU64")):
		return "it is a dump of the Windows kernel"
	case bytes.HasPrefix(data, []byte("\xcf\xfa\xed\xfe")):
		return "it is a Mach-O file"
	}
	return fmt.Sprintf("it begins with % x", data[:min(8, len(data))])
}
