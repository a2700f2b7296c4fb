package loader

import "github.com/seamwalk/seam/arch"

// An ImageID is what tells two builds of one file apart. A field that the
// dump does not give is zero.
type ImageID struct {
	Name      string // file name without folders
	BuildID   string // ELF: the NT_GNU_BUILD_ID in hex
	Timestamp uint32 // PE: IMAGE_FILE_HEADER.TimeDateStamp
	Size      uint32 // PE: IMAGE_OPTIONAL_HEADER.SizeOfImage
	MVID      string // PE with metadata: module version id, a GUID in upper-case hex
}

// An Image is an ELF or PE file mapped into the process.
type Image struct {
	ID     ImageID
	Path   string // as the dump has it; "" when it has none
	Format string // "elf" or "pe"

	span arch.Span
	bias uint64
}

// Span returns where the image lies, from its first mapped byte to its last.
func (m *Image) Span() arch.Span { return m.span }

// Bias returns what was added to the image's link addresses to get addresses
// in the process; for PE it is the base, link addresses being RVAs.
func (m *Image) Bias() uint64 { return m.bias }

// Table returns where in the process a table of the image lies that is mapped
// with it: ".eh_frame_hdr", ".eh_frame", ".plt" and such of ELF (by program
// headers where there are no section headers), ".pdata" of PE.
func (m *Image) Table(name string) (arch.Span, bool) { return arch.Span{}, false }

// Section returns the bytes of a section that is not mapped, as ".debug_frame"
// or ".symtab", unpacked if the file has it compressed. It is nil when the
// image has no such section or its file is not at hand.
func (m *Image) Section(name string) []byte { return nil }

// Bytes says where the bytes of the image come from: "dump" when the dump
// holds them, "file" when (some of) them come from a file of the same
// identity, "none" when there are none.
func (m *Image) Bytes() string { return "none" }
