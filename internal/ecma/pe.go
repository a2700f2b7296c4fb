package ecma

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// cor20Size is the size of IMAGE_COR20_HEADER, which its first word repeats (II.25.3.3).
const cor20Size = 72

// Locate finds the metadata of the PE file whose first byte lies at base. The
// file may lie there as the loader maps it, each section at its RVA, as
// CoreCLR maps ReadyToRun images, or as it lies on disk, as CoreCLR maps
// images that hold IL only. Which of the two is seen from the metadata's own
// signature: the headers are the same.
func Locate(r objfile.Reader, base arch.Addr) (at arch.Addr, size uint32, err error) {
	h, missing, err := objfile.ReadPE(r, base)
	switch {
	case missing == base && h == nil && err == nil:
		return 0, 0, &Error{"the DOS header of an image", base, true}
	case missing != 0:
		return 0, 0, &Error{"the PE header of an image", missing, true}
	case err != nil:
		return 0, 0, &Error{"the PE header of an image", base, false}
	}
	d, ok := h.Dir(objfile.PECLR)
	if !ok {
		return 0, 0, &Error{"an image without a CLR header", base, false}
	}
	err = &Error{"the CLR header of an image", base + arch.Addr(d.RVA), false}
	for _, place := range []func(uint32) (arch.Addr, bool){h.Mapped(base), h.Flat(base)} {
		cor, ok := place(d.RVA)
		if !ok {
			continue
		}
		b := r.View(cor, 16)
		if b == nil {
			err = &Error{"the CLR header of an image", cor, true}
			continue
		}
		if binary.LittleEndian.Uint32(b) != cor20Size {
			continue
		}
		rva, size := cor20Metadata(b)
		if at, ok = place(rva); !ok {
			continue
		}
		root := r.View(at, 4)
		if root == nil {
			err = &Error{"the metadata of an image", at, true}
			continue
		}
		if binary.LittleEndian.Uint32(root) == signature {
			return at, size, nil
		}
	}
	return 0, 0, err
}

// cor20Metadata returns where an IMAGE_COR20_HEADER says that the metadata lies.
func cor20Metadata(b []byte) (rva, size uint32) {
	return binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
}
