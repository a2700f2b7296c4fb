package objfile

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
)

// A CodeView names the file of debugging information of a PE image, and its
// build: symbol servers keep PDB files under it.
type CodeView struct {
	GUID [16]byte // as it lies in the file
	Age  uint32
	Path string // of the PDB file when the image was linked
}

// Numbers of the debug directory (PE format, "Debug Directory (Image Only)").
const (
	debugEntrySize = 28 // of an IMAGE_DEBUG_DIRECTORY
	debugCodeView  = 2  // IMAGE_DEBUG_TYPE_CODEVIEW
	maxDebugDirs   = 64
	maxPDBPath     = 1 << 12
)

// CodeView returns the first CodeView record of kind RSDS of the image, which is
// mapped section by section at base in r.
func (h *PE) CodeView(r Reader, base arch.Addr) (c CodeView, ok bool) {
	d, ok := h.Dir(PEDebug)
	if !ok {
		return c, false
	}
	for i := range min(d.Size/debugEntrySize, maxDebugDirs) {
		e := r.View(base+arch.Addr(d.RVA)+arch.Addr(i)*debugEntrySize, debugEntrySize)
		if e == nil {
			return c, false
		}
		if le32(e[12:]) != debugCodeView {
			continue
		}
		// The record: "RSDS", a GUID, an age, a path.
		at := base + arch.Addr(le32(e[20:]))
		rec := r.View(at, 24)
		if rec == nil || string(rec[:4]) != "RSDS" {
			continue
		}
		copy(c.GUID[:], rec[4:])
		c.Age = le32(rec[20:])
		c.Path, ok = text(r, at+24, maxPDBPath)
		return c, ok
	}
	return c, false
}

// String returns the identity as symbol servers write it: the GUID without
// dashes, in upper case, and the age in hex.
func (c *CodeView) String() string {
	g := c.GUID[:]
	return fmt.Sprintf("%08X%04X%04X%X%x", le32(g), le16(g[4:]), le16(g[6:]), g[8:], c.Age)
}
