package loader

import "github.com/seamwalk/seam/arch"

// A Memory is the memory of a process: what the dump has of it, then what
// image files of the right identity have at the same place. Holes are known
// to be holes.
type Memory struct{}

// Word returns the 8 bytes at a as a little-endian number.
func (m *Memory) Word(a arch.Addr) (v uint64, ok bool) { return 0, false }

// Slice returns the n bytes at a without copying, or nil when one is missing
// or they do not lie in one piece.
func (m *Memory) Slice(a arch.Addr, n int) []byte { return nil }

// View returns the n bytes at a, or nil when one is missing. It copies them
// only when they do not lie in one piece.
func (m *Memory) View(a arch.Addr, n int) []byte { return nil }

// Read copies to p the bytes at a up to the first missing one, and returns how
// many.
func (m *Memory) Read(a arch.Addr, p []byte) int { return 0 }

// An Absence says why a byte is not at hand.
type Absence uint8

const (
	Present       Absence = iota
	Unmapped              // no mapping of the process holds the address
	NotDumped             // mapped, anonymous or written to, and the dump does not have it
	ImageNotFound         // part of an image whose file was not found
	ImageDiffers          // part of an image; a file of its name was found, and is of another build
	ImageCut              // part of an image; the file found ends before it
)

// Absent says why the byte at a is not at hand, and which image would hold it
// (nil when none would).
func (m *Memory) Absent(a arch.Addr) (Absence, *Image) { return Unmapped, nil }
