package symbolize

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// pltSource calls functions of the C library, and takes the address of one that
// it calls too, which gives .plt.got an entry.
const pltSource = `
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
void *volatile taken;
int main(int argc, char **argv) {
	taken = (void *)qsort;
	qsort(argv, argc, 8, (int (*)(const void *, const void *))strcmp);
	puts(getenv("HOME"));
	printf("%d %ld %g\n", atoi(argv[0]), (long)time(0), pow(argc, 0.3));
	fputs(strerror(argc), stderr);
	abort();
}
`

// Every entry of a procedure linkage table has the name that objdump gives it,
// and each of its bytes has that name, whatever linker made it, for whatever CPU.
func TestPLT(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "plt.c")
	if err := os.WriteFile(src, []byte(pltSource), 0o600); err != nil {
		t.Fatal(err)
	}
	x86, arm := arch.AMD64, arch.ARM64
	for _, c := range []struct {
		a        *arch.Arch
		compiler string
		flags    string
	}{
		{x86, "gcc", ""},
		{x86, "gcc", "-no-pie -Wl,-z,lazy"},
		{x86, "gcc", "-Wl,-z,now"},
		{x86, "gcc", "-fcf-protection -Wl,-z,ibtplt -Wl,-z,lazy"},
		{x86, "gcc", "-fcf-protection -Wl,-z,ibtplt -Wl,-z,now"},
		{x86, "gcc", "-Wl,-z,bndplt -Wl,-z,lazy"},
		{x86, "gcc", "-fuse-ld=gold"},
		{x86, "clang", "-fuse-ld=lld"},
		{x86, "clang", "-fuse-ld=lld -fcf-protection -Wl,-z,force-ibt"},
		{x86, "clang", "-fuse-ld=lld -Wl,-z,retpolineplt"},
		{x86, "clang", "-fuse-ld=lld -Wl,-z,retpolineplt -Wl,-z,now"},
		{x86, "clang", "-fuse-ld=mold -Wl,-z,lazy"},
		{x86, "clang", "-fuse-ld=mold -Wl,-z,now"},
		{arm, "aarch64-linux-gnu-gcc", ""},
		{arm, "aarch64-linux-gnu-gcc", "-Wl,-z,lazy"},
		{arm, "aarch64-linux-gnu-gcc", "-Wl,-z,pac-plt"},
		{arm, "aarch64-linux-gnu-gcc", "-Wl,-z,force-bti -Wl,-z,lazy"},
		{arm, "aarch64-linux-gnu-gcc", "-Wl,-z,force-bti -Wl,-z,pac-plt -no-pie"},
		{arm, "clang", "--target=aarch64-linux-gnu -fuse-ld=lld"},
		{arm, "clang", "--target=aarch64-linux-gnu -fuse-ld=lld -Wl,-z,pac-plt"},
		{arm, "clang", "--target=aarch64-linux-gnu -fuse-ld=lld -Wl,-z,force-bti -Wl,-z,pac-plt"},
		{arm, "clang", "--target=aarch64-linux-gnu -fuse-ld=mold"},
	} {
		t.Run(c.compiler+" "+c.flags, func(t *testing.T) {
			objdump, prog := "objdump", filepath.Join(dir, "plt")
			if c.a == arm {
				objdump = "aarch64-linux-gnu-objdump"
			}
			for _, tool := range []string{c.compiler, objdump} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("needs %s", tool)
				}
			}
			args := append([]string{"-w", "-O1", "-o", prog, src, "-lm"}, strings.Fields(c.flags)...)
			if out, err := exec.Command(c.compiler, args...).CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			f, err := elf.Open(prog)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			plt := pltTable(c.a, func(name string) (arch.LinkAddr, []byte) {
				s := f.Section(name)
				if s == nil {
					return 0, nil
				}
				b, err := s.Data()
				if err != nil {
					t.Fatal(err)
				}
				return arch.LinkAddr(s.Addr), b
			})
			if plt == nil {
				t.Fatal("no entries")
			}
			plt.finish(0, 1<<40)
			out, err := exec.Command(objdump, "-d", prog).Output()
			if err != nil {
				t.Fatal(err)
			}
			comparePLT(t, plt, f, string(out))
		})
	}
}

var (
	pltLabel = regexp.MustCompile(`^([0-9a-f]+) <([^>]+)@plt>:$`)
	pltInsn  = regexp.MustCompile(`^ *([0-9a-f]+):\t`)
)

func comparePLT(t *testing.T, plt *table, f *elf.File, listing string) {
	name := ""
	labels, insns := map[string]bool{}, 0
	for line := range strings.Lines(listing) {
		line = strings.TrimSuffix(line, "\n")
		if m := pltLabel.FindStringSubmatch(line); m != nil {
			name = m[2]
			labels[name] = true
			continue
		}
		m := pltInsn.FindStringSubmatch(line)
		if m == nil {
			name = ""
			continue
		}
		var at arch.LinkAddr
		fmt.Sscanf(m[1], "%x", &at)
		e, ok := plt.find(at)
		if name == "" || name[0] == '*' { // IRELATIVE
			continue
		}
		insns++
		if !ok || plt.name(e) != name+"@plt" {
			got := "nothing"
			if ok {
				got = plt.name(e)
			}
			t.Errorf("%#x is %s, and %s@plt to objdump", at, got, name)
		}
	}
	// objdump knows not all forms; what a relocation of .rela.plt names is there.
	named := map[string]bool{}
	for _, e := range plt.entries {
		named[strings.TrimSuffix(plt.name(e), "@plt")] = true
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"puts", "getenv", "printf", "atoi", "time", "pow", "fputs", "strerror", "abort", "qsort"} {
		imported := false
		for _, s := range syms {
			imported = imported || s.Name == want && s.Section == elf.SHN_UNDEF
		}
		if imported && !named[want] {
			t.Errorf("no entry is named %s", want)
		}
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || strings.HasPrefix(s.Name, ".plt") {
			continue
		}
		for _, e := range plt.entries {
			if uint64(e.at) < s.Addr+s.Size && uint64(e.end) > s.Addr {
				t.Errorf("an entry [%#x, %#x) lies in %s", e.at, e.end, s.Name)
			}
		}
	}
	t.Logf("%d entries, %d instructions of %d names compared", len(plt.entries), insns, len(labels))
}
