package clr

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/loader"
)

// stub builds a library of C code, and opens a core of a process that has it
// mapped: of its bytes the core has the first page.
func stub(t *testing.T, name, source string) *loader.Process {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", path, path+".c").CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %v\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const base, page = 0x7f0000000000, 0x1000
	var maps [][3]uint64
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			lo := p.Vaddr &^ (page - 1)
			maps = append(maps, [3]uint64{base + lo, base + (p.Vaddr+p.Filesz+page-1)&^(page-1), p.Off &^ (page - 1) / page})
		}
	}
	le := binary.LittleEndian
	note := le.AppendUint64(le.AppendUint64(nil, uint64(len(maps))), page)
	for _, m := range maps {
		for _, v := range m {
			note = le.AppendUint64(note, v)
		}
	}
	for range maps {
		note = append(append(note, "/app/"+name...), 0)
	}
	var c memtest.Core
	c.Note("CORE", 0x46494c45, note)
	c.Thread(1, base+page, base)
	c.Loads = append(c.Loads, memtest.Load{Addr: base, Data: data[:page], Flags: elf.PF_R})
	core := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(core, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := loader.Open(core, &loader.Options{Find: loader.DirFinder(dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Runtimes that are not read are refused by name, with what is read all the same.
func TestRefusals(t *testing.T) {
	const table = "void *g_dacTable[160];\n"
	version := func(v string) string {
		return `char sccsid[] __attribute__((used)) = "@(#)Version ` + v + ` @Commit: 3c298d9f00936d651cc47d221762474e25277672";` + "\n"
	}
	for _, c := range []struct {
		file, source string
		want         string
	}{
		{"libcoreclr.so", table + version("7.0.2024.26716"), "it is .NET 7.0.20; runtimes before .NET 8 are not read"},
		{"libcoreclr.so", table + version("6.0.3624.51421"), "it is .NET 6.0.36; runtimes before .NET 8"},
		{"libcoreclr.so", table + version("5.0.1722.21314"), "it is .NET 5; runtimes before .NET 8"},
		{"libcoreclr.so", table + version("4.700.22.55902"), "it is .NET Core 3; runtimes before .NET 8"},
		{"libcoreclr.so", table + version("4.6.30411.01"), "it is .NET Core 2 or older; runtimes before .NET 8"},
		{"libcoreclr.so", table, "it exports no contract descriptor, and is none of .NET 8"},
		{"libcoreclr.so", "int x = 1;", "--images with a folder that holds this file"},
		{"libcoreclr.so", "int mono_get_root_domain(void) { return 1; }", "it is Mono, which is not read"},
		{"libmonosgen-2.0.so", "int x = 1;", "libmonosgen-2.0.so: the runtime is Mono, which is not read"},
		{"clr.dll", "int x = 1;", "clr.dll: the runtime is that of the .NET Framework, which is not read"},
		{"wow64.dll", "int x = 1;", "one of 32 bits (WOW64), whose own stacks are not read"},
	} {
		rts, warns := Open(stub(t, c.file, c.source))
		if len(rts) != 0 || len(warns) != 1 || warns[0].Code != "runtime_unreadable" || !strings.Contains(warns[0].Text, c.want) {
			t.Errorf("%s, %q: %d runtimes, %v", c.file, c.want, len(rts), warns)
			continue
		}
		if same := strings.Contains(warns[0].Text, allTheSame); same == strings.Contains(c.want, "--images") {
			t.Errorf("%s, %q: what is read all the same: %v", c.file, c.want, same)
		}
	}
}
