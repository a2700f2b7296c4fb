package loader

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/internal/objfile"
)

// A core without NT_FILE and without the program's headers has them looked for in
// a file of the program's name, which need not be the program, nor an ELF file.
func TestProgramOfAnotherKind(t *testing.T) {
	const stack = 0x7ffc00000000
	dir := t.TempDir()
	put(t, buildPE(1), dir, "p")
	b := buildCore{loads: []buildLoad{{addr: stack, data: []byte("/bin/p\x00"), flags: elf.PF_R | elf.PF_W}}}
	b.thread(1, 0x401000, stack)
	var auxv []byte
	for _, v := range []uint64{atPhdr, 0x400000 + objfile.ELFHeaderSize, atPhnum, 9, atEntry, 0x401000, atExecFn, stack, 0, 0} {
		auxv = binary.LittleEndian.AppendUint64(auxv, v)
	}
	b.note("CORE", ntAuxv, auxv)
	p := b.open(t, &Options{Find: DirFinder(dir)})
	if !warned(p, "image_differs") || !warned(p, "no_images") {
		t.Errorf("warnings %v", p.Problems())
	}
}
