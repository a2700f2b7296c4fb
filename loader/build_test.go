package loader

import (
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
)

// A buildCore makes the bytes of an ELF core.
type buildCore struct {
	machine elf.Machine
	loads   []buildLoad
	notes   []byte
	xnum    bool // count the program headers in section header 0
}

type buildLoad struct {
	addr  uint64
	data  []byte
	mem   uint64 // p_memsz; 0: as long as data
	flags elf.ProgFlag
}

func (b *buildCore) note(name string, typ uint32, desc []byte) {
	c := memtest.Core{Notes: b.notes}
	c.Note(name, typ, desc)
	b.notes = c.Notes
}

// thread adds an x86-64 NT_PRSTATUS.
func (b *buildCore) thread(tid uint32, rip, rsp uint64) {
	c := memtest.Core{Notes: b.notes}
	c.Thread(tid, rip, rsp)
	b.notes = c.Notes
}

// mapped adds NT_FILE.
func (b *buildCore) mapped(files ...fileNote) {
	d := binary.LittleEndian.AppendUint64(nil, uint64(len(files)))
	d = binary.LittleEndian.AppendUint64(d, pageSize)
	for _, f := range files {
		for _, v := range []uint64{uint64(f.Lo), uint64(f.Hi), f.off / pageSize} {
			d = binary.LittleEndian.AppendUint64(d, v)
		}
	}
	for _, f := range files {
		d = append(append(d, f.path...), 0)
	}
	b.note("CORE", ntFile, d)
}

func (b *buildCore) bytes() []byte {
	c := memtest.Core{Machine: b.machine, Notes: b.notes, ManyHeaders: b.xnum}
	for _, l := range b.loads {
		c.Loads = append(c.Loads, memtest.Load{Addr: l.addr, Data: l.data, Size: l.mem, Flags: l.flags})
	}
	return c.Bytes()
}

// open opens the core from memory.
func (b *buildCore) open(t testing.TB, opt *Options) *Process {
	t.Helper()
	if opt == nil {
		opt = &Options{}
	}
	o := *opt
	o.Limits = o.Limits.withDefaults()
	p, err := openBytes("built", b.bytes(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// warned reports whether the process has a warning of that code.
func warned(p *Process, code string) bool {
	for _, w := range p.Problems() {
		if w.Code == code {
			return true
		}
	}
	return false
}

// unpacked returns a plain file with what a zstd file of the corpus holds.
func unpacked(t testing.TB, name string) string {
	t.Helper()
	src := corpus.Path(t, name)
	dst := filepath.Join(t.TempDir(), filepath.Base(name))
	if out, err := exec.Command("zstd", "-qd", "--long=31", "--sparse", src, "-o", dst).CombinedOutput(); err != nil {
		t.Skipf("zstd: %v: %s", err, out)
	}
	return dst
}
