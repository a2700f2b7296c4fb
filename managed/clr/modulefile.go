package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
)

// olderLayout is where .NET 8 has what later releases have in a Module or a
// MethodTable itself: a Module leads to its image through its PEAssembly
// (src/coreclr/vm/peassembly.h, peimage.h and peimagelayout.h of 8.0), and the TypeDef
// row of a MethodTable has two bytes of its own (methodtable.h).
type olderLayout struct {
	File   int `c:"Module.PEAssembly"`
	Image  int `c:"PEAssembly.PEImage"`
	Path   int `c:"PEImage.m_path"` // an SString, which is an SBuffer
	Loaded int `c:"PEImage.LoadedImageLayout"`
	Base   int `c:"PEImageLayout.Base"`

	BufferSize int `c:"SBuffer.m_size"` // in bytes
	Buffer     int `c:"SBuffer.m_buffer"`

	TypeRow int `c:"MethodTable.m_wToken"`
}

// olderFields are what later releases have instead.
var olderFields = []string{"Module.Base", "Module.Path", "DynamicMetadata.Size", "DynamicMetadata.Data", "MethodTable.MTFlags2"}

// fillOlder fills n.older where this runtime's layouts have the fields of .NET 8, and
// takes what they stand for out of the list of those that are lacking.
func (n *names) fillOlder(c *contract, lacks []string) []string {
	if !slices.Contains(lacks, olderFields[0]) {
		return lacks
	}
	var l olderLayout
	if c.fill(&l) != nil {
		return lacks
	}
	n.older = &l
	return slices.DeleteFunc(lacks, func(name string) bool { return slices.Contains(olderFields, name) })
}

// moduleBase returns the address of the image of the Module at a, 0 for one
// without. If a word that leads there is missing, its address is missing.
func (r *Runtime) moduleBase(a arch.Addr) (base, missing arch.Addr) {
	l := r.names.older
	if l == nil {
		return r.pointerAt(field(a, r.names.ModBase))
	}
	image, missing := r.moduleImage(a)
	if image == 0 {
		return 0, missing
	}
	layout, missing := r.pointerAt(field(image, l.Loaded))
	if layout == 0 {
		return 0, missing
	}
	return r.pointerAt(field(layout, l.Base))
}

// moduleImage returns the PEImage of the Module at a of .NET 8, 0 for one that has
// none or where a word is missing.
func (r *Runtime) moduleImage(a arch.Addr) (image, missing arch.Addr) {
	l := r.names.older
	file, missing := r.pointerAt(field(a, l.File))
	if file == 0 {
		return 0, missing
	}
	return r.pointerAt(field(file, l.Image))
}

// pointerAt reads the pointer at a; missing is a where the dump lacks it.
func (r *Runtime) pointerAt(a arch.Addr) (to, missing arch.Addr) {
	v, ok := r.word(a)
	if !ok {
		return 0, a
	}
	return arch.Addr(v), 0
}

// modulePaths returns where the names of the file of the Module at a lie, as
// UTF-16 text; an address of 0 is none.
func (r *Runtime) modulePaths(a arch.Addr) (paths [2]arch.Addr) {
	n := &r.names
	if n.older == nil {
		paths[0], _ = r.pointerAt(field(a, n.ModPath))
		if n.ModFile >= 0 {
			paths[1], _ = r.pointerAt(field(a, n.ModFile))
		}
		return paths
	}
	if image, _ := r.moduleImage(a); image != 0 {
		paths[0], _ = r.pointerAt(field(image, n.older.Path+n.older.Buffer))
	}
	return paths
}

// savedMetadata returns where the metadata lies that the runtime has saved of an
// emitted Module, and its size; p is what the Module has of it, and is not 0.
func (r *Runtime) savedMetadata(p arch.Addr) (at arch.Addr, size uint32, err error) {
	n := &r.names
	if l := n.older; l != nil {
		size, ok := r.u32(field(p, l.BufferSize))
		if !ok {
			return 0, 0, missing("the size of its metadata", field(p, l.BufferSize))
		}
		at, lost := r.pointerAt(field(p, l.Buffer))
		if lost != 0 {
			return 0, 0, missing("the address of its metadata", lost)
		}
		return at, size, nil
	}
	size, ok := r.u32(field(p, n.DynSize))
	if !ok {
		return 0, 0, missing("the size of its metadata", field(p, n.DynSize))
	}
	return field(p, n.DynBytes), size, nil
}

// noTypeRow stands in a MethodTable of .NET 8 for a row that two bytes do not hold.
const noTypeRow = 0xffff

// typeRow returns the TypeDef row of the class of a MethodTable, 0 where that is
// not known; missing is then the address of the word that is missing, if one is.
func (r *Runtime) typeRow(mt arch.Addr) (row uint32, missing arch.Addr) {
	n := &r.names
	if n.older != nil {
		at := field(mt, n.older.TypeRow)
		v, ok := r.u16(at)
		if !ok {
			return 0, at
		}
		if v == noTypeRow {
			return 0, 0
		}
		return uint32(v), 0
	}
	at := field(mt, n.MTFlags2)
	v, ok := r.u32(at)
	if !ok {
		return 0, at
	}
	return v >> 8, 0 // the low byte is flags
}
