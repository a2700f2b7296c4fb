package loader

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// withMetadata gives an assembly a CLR header at the start of .text and a
// metadata root at file offset root with two streams.
func withMetadata(b []byte, root uint32) []byte {
	le := binary.LittleEndian
	le.PutUint32(b[152+112+8*objfile.PECLR:], 0x10200)
	le.PutUint32(b[152+116+8*objfile.PECLR:], 72)
	le.PutUint32(b[0x200:], 72)
	le.PutUint32(b[0x208:], 0x10000+root)
	le.PutUint32(b[0x20c:], 0x1000)
	r := b[root:]
	copy(r, "BSJB")
	le.PutUint32(r[12:], 4)
	copy(r[16:], "v4\x00\x00")
	le.PutUint16(r[22:], 2)
	le.PutUint32(r[24:], 0x60)
	le.PutUint32(r[28:], 0x10)
	copy(r[32:], "#~\x00\x00")
	le.PutUint32(r[36:], 0x90)
	le.PutUint32(r[40:], 0x10)
	copy(r[44:], "#Strings\x00\x00\x00\x00")
	return b
}

// gcore leaves out every page of a flat assembly. Of two builds of one size,
// the one is taken whose metadata lies where the process has pointers to.
func TestChooseByPointers(t *testing.T) {
	dir := t.TempDir()
	for name, root := range map[string]uint32{"a": 0x300, "b": 0x400, "c": 0x500} {
		path := filepath.Join(dir, name, "A.dll")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, withMetadata(buildPE(root), root), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const flat = 0x7f0000000000
	var heap []byte
	for _, p := range []uint64{1, flat + 0x400, 2, flat + 0x460, flat + 0x490, flat + 0x300} {
		heap = binary.LittleEndian.AppendUint64(heap, p)
	}
	b := buildCore{loads: []buildLoad{{addr: 0x5000, data: heap, flags: elf.PF_R | elf.PF_W}}}
	b.thread(1, 0, 0)
	b.mapped(fileNote{arch.Span{Lo: flat, Hi: flat + 0x3000}, 0, "/app/A.dll"})
	p := b.open(t, &Options{Find: DirFinder(dir)})
	if path, _, text := p.Images[0].File(); path != filepath.Join(dir, "b", "A.dll") || p.Images[0].Verified() {
		t.Errorf("took %s (%s), verified %v", path, text, p.Images[0].Verified())
	}
	if w, ok := p.Memory.Word(flat + 0x400); !ok || uint32(w) != 0x424a5342 {
		t.Errorf("the metadata root: %#x %v", w, ok)
	}
}
