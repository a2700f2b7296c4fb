package loader

import (
	"bytes"
	"debug/elf"
	"fmt"
	"sort"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A bundleFile is a file in a single-file bundle, appended to the host's ELF image.
type bundleFile struct {
	name              string
	off, size, packed uint64
}

// bundleMarker is what apphost has right behind the offset of the bundle's
// header (src/installer/managed/Microsoft.NET.HostModel/AppHost of .NET 5 to 10).
var bundleMarker = []byte{
	0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
	0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
}

// bundleMark returns where in the file the marker is, and the offset of the
// bundle's header, which is 0 in a host without one. It looks in the data
// segments only, a few hundred kilobytes.
func bundleMark(data []byte, progs []objfile.Prog) (mark, header uint64, ok bool) {
	left := len(data) // segments that lie over one another are not searched for ever
	for _, p := range progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 {
			continue
		}
		seg := bin.Slice(data, p.Off, p.Filesz)
		if left -= len(seg); left < 0 {
			break
		}
		if i := bytes.Index(seg, bundleMarker); i >= 8 {
			return p.Off + uint64(i), le64(seg[i-8:]), true
		}
	}
	return 0, 0, false
}

// checkBundle compares the offset of the bundle's header with the dump's: all
// programs made from one host have its build-id.
func (m *Image) checkBundle(data []byte, progs []objfile.Prog) string {
	mark, header, ok := bundleMark(data, progs)
	if !ok {
		return ""
	}
	for _, p := range progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 || mark < p.Off || mark >= p.Off+p.Filesz {
			continue
		}
		b := m.mem.dumped(arch.Addr(m.bias + p.Vaddr + (mark - p.Off) - 8))
		if len(b) >= 40 && bytes.Equal(b[8:40], bundleMarker) && le64(b) != header {
			return fmt.Sprintf("it is another application on the same host: its bundle header lies at %#x, not %#x", header, le64(b))
		}
	}
	return ""
}

// maxBundled bounds how many files of a bundle are looked at. Large programs have a
// few thousand.
const maxBundled = 1 << 16

// bundleFiles reads the bundle's manifest, or nil. The list is by offset.
func bundleFiles(data []byte, progs []objfile.Prog) []bundleFile {
	_, header, ok := bundleMark(data, progs)
	if !ok || header == 0 || header >= uint64(len(data)) {
		return nil
	}
	r := bin.New("bundle header", data[header:])
	major := r.U32()
	r.U32() // minor
	n := min(r.Count(uint64(r.U32()), 18), maxBundled)
	bundleString(&r) // its id
	if major >= 2 {
		r.Bytes(4*8 + 8) // where deps.json and runtimeconfig.json are, flags
	}
	files := make([]bundleFile, 0, n)
	for range n {
		f := bundleFile{off: r.U64(), size: r.U64()}
		if major >= 6 {
			f.packed = r.U64()
		}
		r.U8() // type
		f.name = bundleString(&r)
		if r.Err() != nil {
			return nil
		}
		files = append(files, f)
	}
	sort.Slice(files, func(i, j int) bool { return files[i].off < files[j].off })
	return files
}

// bundleString reads a string with its length before it, 7 bits a byte
// (.NET's BinaryWriter).
func bundleString(r *bin.Reader) string {
	n := r.ULEB()
	if n > 4096 {
		r.Fail()
		return ""
	}
	return string(r.Bytes(int(n)))
}
