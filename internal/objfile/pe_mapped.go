package objfile

import "github.com/seamwalk/seam/arch"

// What the headers of a mapped file may claim: where the PE header begins, in bytes
// from the DOS header (linkers put it into the first page), and how many sections
// there are (the PE format allows 96).
const (
	maxPEHeader   = 1 << 16
	maxPESections = 96
)

// ReadPE reads the headers of the PE file whose first byte lies at base, mapped
// section by section or as its file is: its headers lie the same in both. If a
// byte of them is missing, missing is where the part begins that it belongs to.
func ReadPE(r Reader, base arch.Addr) (h *PE, missing arch.Addr, err error) {
	dos := r.View(base, 64)
	if dos == nil {
		return nil, base, nil
	}
	nt := le32(dos[60:]) // e_lfanew
	if dos[0] != 'M' || dos[1] != 'Z' || nt > maxPEHeader {
		return nil, 0, &FormatError{0, "no MZ header"}
	}
	at := base + arch.Addr(nt)
	head := r.View(at, 24)
	if head == nil {
		return nil, at, nil
	}
	sections, optional := int(le16(head[6:])), int(le16(head[20:]))
	if sections > maxPESections {
		return nil, 0, &FormatError{int64(nt), "more sections than a PE file can have"}
	}
	data := r.View(base, int(nt)+24+optional+sections*peSectionSize)
	if data == nil {
		return nil, at, nil
	}
	h, err = ParsePE(data)
	return h, 0, err
}
