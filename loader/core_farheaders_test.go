package loader

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// farHeaders moves the program headers of an ELF file to offset at, behind
// everything else, into a segment of their own, as BOLT does.
func farHeaders(t testing.TB, data []byte, at uint64) []byte {
	t.Helper()
	h, err := objfile.ParseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	progs, _ := objfile.ParseProgs(data, h.Phoff, h.Phnum)
	end, last := uint64(0), 0
	for i, p := range progs {
		if p.Type == elf.PT_LOAD {
			end, last = max(end, p.Vaddr+p.Memsz), i
		}
	}
	addr := max((end+at-1)&^(at-1), at)
	size := uint64(len(progs)+1) * objfile.ProgSize
	var table []byte
	for i, p := range progs {
		if p.Type == elf.PT_PHDR {
			p.Off, p.Vaddr, p.Filesz, p.Memsz = at, addr, size, size
		}
		align := uint64(pageSize)
		if p.Type != elf.PT_LOAD {
			align = 8
		}
		table = putProg(table, p, align)
		if i == last {
			table = putProg(table, objfile.Prog{Type: elf.PT_LOAD, Flags: elf.PF_R, Off: at, Vaddr: addr, Filesz: size, Memsz: size}, pageSize)
		}
	}
	out := make([]byte, at, at+size)
	if uint64(copy(out, data)) < uint64(len(data)) {
		t.Fatalf("the file has %#x bytes", len(data))
	}
	out = append(out, table...)
	binary.LittleEndian.PutUint64(out[32:], at)
	binary.LittleEndian.PutUint16(out[56:], uint16(len(progs)+1))
	clear(out[h.Phoff : h.Phoff+uint64(len(progs))*objfile.ProgSize])
	return out
}

const farSource = `
#include <unistd.h>
int parked(void) { pause(); return 3; }
`

// An image whose program headers lie far from its first page is there with its
// bytes and tables, by the file on disk; by another file it is not; and without
// one a warning names it.
func TestFarHeaders(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "libfar.so")
	build := func(source string, out string, flags ...string) {
		src := filepath.Join(dir, "source.c")
		if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"-g", "-O1", "-Wl,--build-id=sha1", "-o", out, src}, flags...)
		if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Skipf("gcc: %v: %s", err, msg)
		}
	}
	far := func() {
		data, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(lib)
		if err := os.WriteFile(lib, farHeaders(t, data, 1<<21), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build(farSource, lib, "-shared", "-fPIC")
	build(`#include <stdio.h>
int parked(void);
int main(void) { printf("%p\n", (void *)parked); fflush(stdout); return parked(); }`, filepath.Join(dir, "program"), lib, "-Wl,-rpath,"+dir)
	far()
	pid, line := started(t, filepath.Join(dir, "program"))
	var at arch.Addr
	if _, err := fmt.Sscanf(line, "0x%x", &at); err != nil {
		t.Fatal(err)
	}
	core := gcored(t, pid)

	p, err := Open(core, &Options{Find: PathFinder()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := p.ImageAt(at)
	if m == nil || m.ID.Name != "libfar.so" || len(m.ID.BuildID) != 40 || warned(p, "no_headers") {
		t.Fatalf("%v lies in %+v; %v", at, m, p.Problems())
	}
	if !m.Verified() {
		t.Error("its file is not known to be the right one")
	}
	if _, ok := m.Table(".eh_frame_hdr"); !ok || p.Memory.View(at, 8) == nil {
		t.Error("no bytes or tables of it")
	}
	if a, _, ok := m.Lookup("parked"); !ok || a != at {
		t.Errorf("parked lies at %v, not at %v", a, at)
	}

	// Without the file, and with another build of it, that has another build-id.
	none, err := Open(core, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	os.Remove(lib) // its process keeps the old one
	build(farSource+"int other(void) { return 1; }", lib, "-shared", "-fPIC")
	far()
	other, err := Open(core, &Options{Find: PathFinder()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, p := range map[string]*Process{"no file": none, "another file": other} {
		m := p.ImageAt(at)
		if m == nil || m.ID.Name != "libfar.so" {
			t.Errorf("%s: %v lies in %+v", name, at, m)
			continue
		}
		if p.Memory.View(at, 8) != nil {
			t.Errorf("%s: bytes of the text", name)
		}
		said := false
		for _, w := range p.Problems() {
			said = said || w.Code == "no_headers" && strings.Contains(w.Text, "libfar.so")
		}
		if !said {
			t.Errorf("%s: warnings %v", name, p.Problems())
		}
	}
}

// The headers are read where the dump has that part of the file mapped.
func TestFarHeadersInDump(t *testing.T) {
	lib := farHeaders(t, elfFile(t, nil), 1<<20)
	b := mapLibrary(t, lib, true)
	p := b.open(t, nil)
	if len(p.Images) != 1 || p.Images[0].progs != nil || !warned(p, "no_headers") {
		t.Fatalf("headers that are not in the dump: %+v", p.Images)
	}
	l := &b.loads[len(b.loads)-1]
	l.data = lib[1<<20:]
	p = b.open(t, nil)
	if len(p.Images) != 1 || p.Images[0].progs == nil || p.Images[0].ID.BuildID == "" || warned(p, "no_headers") {
		t.Errorf("headers in the dump: %+v %v", p.Images, p.Problems())
	}
}
