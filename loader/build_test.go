package loader

import (
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/objfile"
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
	t := trimmer{notes: b.notes}
	t.note(name, typ, desc)
	b.notes = t.notes
}

// thread adds an x86-64 NT_PRSTATUS: pr_pid at 32, rip at 240, rsp at 264.
func (b *buildCore) thread(tid uint32, rip, rsp uint64) {
	d := make([]byte, 336)
	binary.LittleEndian.PutUint32(d[32:], tid)
	binary.LittleEndian.PutUint64(d[240:], rip)
	binary.LittleEndian.PutUint64(d[264:], rsp)
	b.note("CORE", ntPRStatus, d)
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
	if b.machine == 0 {
		b.machine = elf.EM_X86_64
	}
	le := binary.LittleEndian
	n := 1 + len(b.loads)
	off := uint64(objfile.ELFHeaderSize + n*objfile.ProgSize)
	shoff, count, shnum := uint64(0), n, 0
	if b.xnum {
		shoff, count, shnum = off, objfile.PNXNum, 1
		off += objfile.SectionSize
	}
	h := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	h = le.AppendUint16(h, uint16(elf.ET_CORE))
	h = le.AppendUint16(h, uint16(b.machine))
	h = le.AppendUint32(h, 1)
	for _, v := range []uint64{0, objfile.ELFHeaderSize, shoff} {
		h = le.AppendUint64(h, v)
	}
	h = le.AppendUint32(h, 0)
	for _, v := range []int{objfile.ELFHeaderSize, objfile.ProgSize, count, objfile.SectionSize, shnum, 0} {
		h = le.AppendUint16(h, uint16(v))
	}
	prog := func(typ elf.ProgType, flags elf.ProgFlag, off, addr, filesz, memsz uint64) {
		h = le.AppendUint32(h, uint32(typ))
		h = le.AppendUint32(h, uint32(flags))
		for _, v := range []uint64{off, addr, 0, filesz, memsz, 1} {
			h = le.AppendUint64(h, v)
		}
	}
	prog(elf.PT_NOTE, 0, off, 0, uint64(len(b.notes)), 0)
	at := off + uint64(len(b.notes))
	for _, l := range b.loads {
		prog(elf.PT_LOAD, l.flags, at, l.addr, uint64(len(l.data)), max(l.mem, uint64(len(l.data))))
		at += uint64(len(l.data))
	}
	if b.xnum {
		s := make([]byte, objfile.SectionSize)
		le.PutUint32(s[44:], uint32(n))
		h = append(h, s...)
	}
	h = append(h, b.notes...)
	for _, l := range b.loads {
		h = append(h, l.data...)
	}
	return h
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
