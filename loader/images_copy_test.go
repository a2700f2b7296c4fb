package loader

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
)

// copySource maps the page of a function a second time, as V8 does with its
// builtins, and says where that is and where the function lies.
const copySource = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((aligned(4096))) int copied(int x) { return x * 5 + 1; }
__attribute__((aligned(4096))) int next(int x) { return x; }
static int find(struct dl_phdr_info *i, size_t n, void *out) {
	for (int k = 0; k < i->dlpi_phnum; k++) {
		const ElfW(Phdr) *p = &i->dlpi_phdr[k];
		unsigned long at = (unsigned long)copied - i->dlpi_addr;
		if (p->p_type == PT_LOAD && at >= p->p_vaddr && at < p->p_vaddr + p->p_filesz)
			*(long *)out = p->p_offset + (at - p->p_vaddr);
	}
	return 1;
}
int main(void) {
	long off = 0;
	dl_iterate_phdr(find, &off);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *p = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, off);
	printf("%p %p\n", (void *)p, (void *)copied);
	fflush(stdout);
	pause();
	return next(0);
}
`

// started runs a program that writes a line and pauses, and returns its pid and
// the line. It is killed when the test ends.
func started(t testing.TB, path string, args ...string) (pid int, line string) {
	t.Helper()
	c := exec.Command(path, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid, line
}

// gcored returns a core of a process, written by gdb.
func gcored(t testing.TB, pid int, commands ...string) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), "core")
	args := []string{"-q", "-batch", "-nx"}
	for _, c := range commands {
		args = append(args, "-ex", c)
	}
	args = append(args, "-ex", "generate-core-file "+core, "-p", fmt.Sprint(pid))
	msg, err := exec.Command("gdb", args...).CombinedOutput()
	if _, no := os.Stat(core); no != nil {
		t.Skipf("gdb: %v: %s", err, msg)
	}
	return core
}

// A part of a program that is mapped a second time is that program's, with its
// name, its bytes and its symbols, and no assembly without a name.
func TestCopiedText(t *testing.T) {
	program := compiled(t, copySource)
	pid, line := started(t, program)
	var copied, original arch.Addr
	if _, err := fmt.Sscanf(line, "0x%x 0x%x", &copied, &original); err != nil {
		t.Fatal(err)
	}
	p, err := Open(gcored(t, pid), &Options{Find: PathFinder()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, m := range p.Images {
		if m.ID.Name == "" {
			t.Errorf("an image at %v without a name", m.Span())
		}
	}
	m := p.ImageAt(copied)
	if m == nil || m.ID.Name != filepath.Base(program) || m.Format != "elf" || m.Span().Lo != copied || m.Span().Hi != copied+pageSize {
		t.Fatalf("the copy at %v is in %+v", copied, m)
	}
	whole := p.ImageAt(original)
	if m.ID.BuildID == "" || m.ID != whole.ID {
		t.Errorf("the copy is of %v, the program is %v", m.ID, whole.ID)
	}
	if a, b := uint64(copied)-m.Bias(), uint64(original)-whole.Bias(); a != b {
		t.Errorf("the function lies at link address %#x in the copy, %#x in the program", a, b)
	}
	a, b := p.Memory.View(copied, 16), p.Memory.View(original, 16)
	if a == nil || string(a) != string(b) {
		t.Errorf("the copy has % x, the program % x", a, b)
	}
	if _, ok := m.Table(".eh_frame_hdr"); ok {
		t.Error("the copy claims a table that is mapped elsewhere")
	}
	if _, _, ok := m.Lookup("main"); ok {
		t.Error("the copy has a dynamic symbol table")
	}
	if _, why, text := m.File(); why != Present || strings.Contains(text, "not the") {
		t.Errorf("the file: %v, %s", why, text)
	}
}
