package objfile

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"

	"github.com/seamwalk/seam/arch"
)

// A CodeView names the file of debugging information of a PE image, and its
// build: symbol servers keep PDB files under it.
type CodeView struct {
	GUID [16]byte // as it lies in the file
	Age  uint32
	Path string // of the PDB file when the image was linked
	// Portable says that the image was made with a portable PDB, whose identity
	// is the GUID and Stamp, not the GUID and Age (PE-COFF.md of dotnet/runtime,
	// "CodeView Debug Directory Entry").
	Portable bool
	Stamp    uint32 // TimeDateStamp of the entry
}

// A Debug is what the debug directory of a PE image says of portable PDBs.
type Debug struct {
	CodeView CodeView
	Named    bool // there is a CodeView
	// Embedded is where an embedded portable PDB lies, packed: see UnpackPDB. Its
	// Hi is 0 where there is none.
	Embedded arch.Span
}

// Numbers of the debug directory (PE format, "Debug Directory (Image Only)";
// PE-COFF.md of dotnet/runtime for portable PDBs).
const (
	debugEntrySize = 28 // of an IMAGE_DEBUG_DIRECTORY
	debugCodeView  = 2  // IMAGE_DEBUG_TYPE_CODEVIEW
	debugEmbedded  = 17 // of a portable PDB
	portableMinor  = 0x504d
	maxDebugDirs   = 64
	maxPDBPath     = 1 << 12
)

// Mapped returns where the bytes of the image lie that is mapped at base, section
// by section.
func (h *PE) Mapped(base arch.Addr) func(rva uint32) (arch.Addr, bool) {
	return func(rva uint32) (arch.Addr, bool) { return base + arch.Addr(rva), true }
}

// Flat returns where the bytes of the image lie whose file lies at base.
func (h *PE) Flat(base arch.Addr) func(rva uint32) (arch.Addr, bool) {
	return func(rva uint32) (arch.Addr, bool) {
		off, _, ok := h.FileOff(rva)
		return base + arch.Addr(off), ok
	}
}

// Debug reads the debug directory: the first CodeView record of kind RSDS, and
// where the first embedded portable PDB is. The image's bytes lie in r where at
// says. What bytes are missing of is left out.
func (h *PE) Debug(r Reader, at func(rva uint32) (arch.Addr, bool)) (d Debug) {
	dir, ok := h.Dir(PEDebug)
	if !ok {
		return d
	}
	for i := range min(dir.Size/debugEntrySize, maxDebugDirs) {
		a, ok := at(dir.RVA + i*debugEntrySize)
		if !ok {
			return d
		}
		e := r.View(a, debugEntrySize)
		if e == nil {
			return d
		}
		data, ok := at(le32(e[20:]))
		if !ok {
			continue
		}
		switch size := le32(e[16:]); le32(e[12:]) {
		case debugCodeView:
			if c, ok := codeView(r, data); ok && !d.Named {
				c.Stamp, c.Portable = le32(e[4:]), le16(e[10:]) == portableMinor
				d.CodeView, d.Named = c, true
			}
		case debugEmbedded:
			if head := r.View(data, 4); string(head) == embeddedMark && d.Embedded.Hi == 0 && size > embeddedHead {
				d.Embedded = arch.Span{Lo: data, Hi: data + arch.Addr(size)}
			}
		}
	}
	return d
}

// codeView reads the record at a: "RSDS", a GUID, an age, a path.
func codeView(r Reader, a arch.Addr) (c CodeView, ok bool) {
	rec := r.View(a, 24)
	if rec == nil || string(rec[:4]) != "RSDS" {
		return c, false
	}
	copy(c.GUID[:], rec[4:])
	c.Age = le32(rec[20:])
	c.Path, ok = text(r, a+24, maxPDBPath)
	return c, ok
}

// String returns the identity as symbol servers write it: the GUID without
// dashes, in upper case, and the age in hex, which for a portable PDB is always
// FFFFFFFF.
func (c *CodeView) String() string {
	g := c.GUID[:]
	age := fmt.Sprintf("%x", c.Age)
	if c.Portable {
		age = "FFFFFFFF"
	}
	return fmt.Sprintf("%08X%04X%04X%X%s", le32(g), le16(g[4:]), le16(g[6:]), g[8:], age)
}

// What an embedded portable PDB begins with: a mark, and its size when unpacked.
const (
	embeddedMark = "MPDB"
	embeddedHead = 8
)

// maxEmbedded bounds the size of an embedded PDB in bytes, unpacked.
const maxEmbedded = 1 << 27

// UnpackPDB returns the portable PDB that an image has embedded as b. It takes no
// more memory than b gives bytes, whatever size it claims.
func UnpackPDB(b []byte) ([]byte, error) {
	if len(b) < embeddedHead || string(b[:4]) != embeddedMark {
		return nil, &FormatError{0, "no embedded PDB"}
	}
	size := le32(b[4:])
	if size == 0 || size > maxEmbedded {
		return nil, &FormatError{4, fmt.Sprintf("an embedded PDB that claims %d bytes", size)}
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[embeddedHead:])), int64(size)+1))
	if err != nil {
		return nil, &FormatError{embeddedHead, "an embedded PDB whose compression is broken"}
	}
	if len(out) != int(size) {
		return nil, &FormatError{embeddedHead, fmt.Sprintf("an embedded PDB that does not have the %d bytes that it claims", size)}
	}
	return out, nil
}
