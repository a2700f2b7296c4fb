package objfile

import (
	"debug/elf"
	"encoding/hex"

	"github.com/seamwalk/seam/internal/bin"
)

// An ELF is what the headers of an ELF file say. It does not hold the file's
// bytes: a file may be mapped into this program and released again, so each
// method that reads the file is given its bytes. It is safe for concurrent use.
type ELF struct {
	ELFHeader
	Progs []Prog
	Whole bool // false: the file ends within its program headers

	once bin.Once
	secs []Section
}

// ParseELF reads the header and the program headers of the ELF file data. The
// error is a [*FormatError].
func ParseELF(data []byte) (*ELF, error) {
	h, err := ParseELFHeader(data)
	if err != nil {
		return nil, err
	}
	f := &ELF{ELFHeader: *h}
	f.Progs, f.Whole = ParseProgs(data, h.Phoff, h.Phnum)
	return f, nil
}

// Sections returns the section headers of the file, which are read when they
// are first asked for. It returns nil for a nil ELF.
func (f *ELF) Sections(data []byte) []Section {
	if f == nil {
		return nil
	}
	f.once.Do(func() { f.secs = f.ELFHeader.Sections(data) })
	return f.secs
}

// Section returns the bytes of a section, unpacked; nil if there is none. See
// [SectionData].
func (f *ELF) Section(data []byte, name string) []byte {
	return SectionData(data, f.Sections(data), name)
}

// DebugOnly reports whether the file is what objcopy --only-keep-debug leaves:
// its sections that are mapped have no bytes.
func (f *ELF) DebugOnly(data []byte) bool {
	for i := range f.Sections(data) {
		if s := &f.secs[i]; s.Name == ".text" || s.Name == ".dynstr" {
			return s.Type == elf.SHT_NOBITS
		}
	}
	return false
}

// Linked returns the n bytes of the file that are mapped at link address at, or
// nil when the file does not hold all of them.
func (f *ELF) Linked(data []byte, at, n uint64) []byte {
	for i := range f.Progs {
		p := &f.Progs[i]
		if p.Type == elf.PT_LOAD && at >= p.Vaddr && at-p.Vaddr < p.Filesz && n <= p.Filesz-(at-p.Vaddr) {
			return bin.Slice(data, p.Off+(at-p.Vaddr), n)
		}
	}
	return nil
}

// LinkTime returns a copy of the n bytes at link address at as the file has
// them, zeros where the file has none for a segment (.bss); nil when they lie in
// no segment, or the file is cut. Relocations are not applied.
func (f *ELF) LinkTime(data []byte, at uint64, n int) []byte {
	for i := range f.Progs {
		p := &f.Progs[i]
		if p.Type != elf.PT_LOAD || at < p.Vaddr || at-p.Vaddr > p.Memsz || uint64(n) > p.Memsz-(at-p.Vaddr) {
			continue
		}
		b := make([]byte, n)
		if o := at - p.Vaddr; o < p.Filesz {
			k := min(uint64(n), p.Filesz-o)
			have := bin.Slice(data, p.Off+o, k)
			if have == nil {
				return nil
			}
			copy(b, have)
		}
		return b
	}
	return nil
}

// BuildID returns the NT_GNU_BUILD_ID in hex, or "".
func (f *ELF) BuildID(data []byte) string { return FileBuildID(data, f.Progs) }

// DebugBuildID is BuildID of a separate file of debugging information. It is
// read from its section: the program headers of such a file are those of the
// image, and speak of bytes that were stripped.
func (f *ELF) DebugBuildID(data []byte) (id string) {
	EachNote(f.Section(data, ".note.gnu.build-id"), 0, func(n Note) bool {
		id = hex.EncodeToString(n.Desc)
		return false
	})
	return id
}

// DebugLink reads .gnu_debuglink: the name of the separate file of debugging
// information, and the CRC-32 of its bytes (gdb manual, "Debugging Information in
// Separate Files"). The name is followed by zeros up to a multiple of 4.
func (f *ELF) DebugLink(data []byte) (name string, crc uint32, ok bool) {
	b := f.Section(data, ".gnu_debuglink")
	name = bin.CString(b, 0)
	sum := bin.Slice(b, (uint64(len(name))+4)&^3, 4)
	if sum == nil {
		return "", 0, false
	}
	return name, le32(sum), true
}
