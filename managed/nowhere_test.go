package managed_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// tool skips the test where a program is not installed.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s", name)
	}
	return path
}

// run runs a program in dir and returns what it wrote, however it ended.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

// A crasher runs a program until it crashes, and returns its core and what it wrote.
type crasher func(t *testing.T, dir, prog string, args ...string) (core, out string)

func gdbCore(t *testing.T, dir, prog string, args ...string) (core, out string) {
	core = filepath.Join(dir, "gdb.core")
	os.Remove(core)
	out = run(t, dir, tool(t, "gdb"), append([]string{"-q", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file " + core, "--args", prog}, args...)...)
	return core, out
}

// linuxCore has the kernel write a core, or, where it gives them to some other
// program, gdb.
func linuxCore(t *testing.T, dir, prog string, args ...string) (core, out string) {
	if b, _ := os.ReadFile("/proc/sys/kernel/core_pattern"); strings.TrimSpace(string(b)) != "core" {
		return gdbCore(t, dir, prog, args...)
	}
	return ownCore()(t, dir, prog, args...)
}

// ownCore has a core written by who runs the program: Linux, or qemu, which
// Linux may then write a core of too.
func ownCore(command ...string) crasher {
	return func(t *testing.T, dir, prog string, args ...string) (core, out string) {
		name := "core*"
		if len(command) > 0 {
			name = "qemu_*.core"
		}
		cores, _ := filepath.Glob(filepath.Join(dir, "*core*"))
		for _, c := range cores {
			os.Remove(c)
		}
		line := append(append([]string{"-c", `ulimit -c unlimited && exec "$0" "$@"`}, command...), prog)
		out = run(t, dir, "/bin/sh", append(line, args...)...)
		if cores, _ = filepath.Glob(filepath.Join(dir, name)); len(cores) != 1 {
			t.Skipf("no core was written: %s", out)
		}
		return cores[0], out
	}
}

// A thread that called into nowhere is walked whole, from where it stands to
// _start, with the return addresses that the program itself knew.
func TestCallsIntoNowhere(t *testing.T) {
	source, err := filepath.Abs("testdata/nowhere.c")
	if err != nil {
		t.Fatal(err)
	}
	ways := []string{"register", "table", "jump"}
	all := []string{"closed", "heap", "stack", "data", "null", "low", "kernel", "noncanonical"}
	for _, c := range []struct {
		compiler string
		flags    []string
		crash    crasher
		where    []string
		ways     []string
	}{
		{"gcc", []string{"-O0"}, gdbCore, all, ways[:1]},
		{"gcc", []string{"-O1"}, linuxCore, all, ways},
		{"gcc", []string{"-O2", "-fomit-frame-pointer"}, linuxCore, all, ways},
		{"gcc", []string{"-O2", "-fno-omit-frame-pointer", "-fcf-protection"}, linuxCore, all, ways},
		{"clang", []string{"-O1", "-fomit-frame-pointer"}, linuxCore, all, ways},
		{"clang", []string{"-O2", "-fno-omit-frame-pointer"}, linuxCore, all, ways},
		{"aarch64-linux-gnu-gcc", []string{"-O0", "-static"}, ownCore("qemu-aarch64"), all[1:], ways},
		{"aarch64-linux-gnu-gcc", []string{"-O2", "-static", "-mbranch-protection=standard"}, ownCore("qemu-aarch64"), all[1:], ways},
	} {
		t.Run(strings.Join(append([]string{c.compiler}, c.flags...), " "), func(t *testing.T) {
			cc := tool(t, c.compiler)
			if c.compiler == "aarch64-linux-gnu-gcc" {
				tool(t, "qemu-aarch64")
			}
			dir := t.TempDir()
			build := func(out string, args ...string) string {
				path := filepath.Join(dir, out)
				if msg, err := exec.Command(cc, append(append([]string{"-w", "-o", path}, c.flags...), args...)...).CombinedOutput(); err != nil {
					t.Skipf("%s: %v: %s", cc, err, msg)
				}
				return path
			}
			lib := ""
			if slices.Contains(c.where, "closed") {
				src := filepath.Join(dir, "lib.c")
				if err := os.WriteFile(src, []byte("int leave(int x) { return x + 1; }\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				lib = build("lib.so", "-shared", "-fPIC", src)
			}
			prog := build("nowhere", source, "-ldl")
			for _, where := range c.where {
				for _, how := range c.ways {
					core, out := c.crash(t, dir, prog, where, how, lib)
					checkNowhere(t, where+", by "+how, core, out)
				}
			}
		})
	}
}

// checkNowhere walks the crashed thread of a core of nowhere.c, which wrote out.
func checkNowhere(t *testing.T, name, core, out string) {
	t.Helper()
	var returns [3]uint64 // of the function that called, of middle, of outer
	_, said, _ := strings.Cut(out, "returns ")
	if n, _ := fmt.Sscanf(said, "%v %v %v", &returns[0], &returns[1], &returns[2]); n != 3 {
		t.Fatalf("%s: the program did not run: %s", name, out)
	}
	p, err := loader.Open(core, &loader.Options{Track: true, Find: loader.MultiFinder(loader.BesideFinder(core), loader.PathFinder())})
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	defer p.Close()
	text := walkNowhere(t, name, p, returns)

	// So it is without the program's file, in a core with just what was read.
	var small bytes.Buffer
	if _, err := p.WriteTrimmed(&small, loader.Kept{}); err != nil {
		t.Fatal(err)
	}
	trimmed := filepath.Join(t.TempDir(), "trimmed.core")
	if err := os.WriteFile(trimmed, small.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := loader.Open(trimmed, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if got := frameText(stackOf(q)); got != text {
		t.Errorf("%s: the trimmed core has\n%s, the whole one\n%s", name, got, text)
	}
}

func stackOf(p *loader.Process) ([]managed.Frame, unwind.Stop) {
	return managed.Open(p, nil).NewWalker().Walk(nil, &p.Threads[0])
}

func frameText(fs []managed.Frame, stop unwind.Stop) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintln(&b, f.Kind, f.PC.Addr, f.SP)
	}
	return b.String() + stop.Reason.String()
}

func walkNowhere(t *testing.T, name string, p *loader.Process, returns [3]uint64) string {
	t.Helper()
	fs, stop := stackOf(p)
	text := frameText(fs, stop)
	sym := symbolize.New(p)
	var pcs []uint64
	var names []string
	for _, f := range fs {
		_, n := sym.Native(f.PC)
		pcs, names = append(pcs, uint64(f.PC.Addr)), append(names, n.Function)
	}
	if stop.Reason != unwind.EndOfStack || names[len(names)-1] != "_start" {
		t.Errorf("%s: %v %+v", name, names, stop)
		return text
	}
	// x86-64 CPUs find a call to an address that is not canonical faulty, and
	// not what it calls.
	if names[0] != "" {
		if exec, _ := p.Executable(arch.Addr(pcs[0])); !exec || !strings.HasPrefix(name, "noncanonical") {
			t.Errorf("%s: the thread stands in %s", name, names[0])
		}
		if p.Crash == nil || p.Crash.HasAddr {
			t.Errorf("%s: the fault has an address: %+v", name, p.Crash)
		}
		pcs, names = append([]uint64{0}, pcs...), append([]string{""}, names...)
	}
	// Who jumped is not on the stack: its caller's return address is what the
	// jump left.
	chain := []string{"", "by_jump", "middle", "outer", "main"}
	switch {
	case strings.HasSuffix(name, "register"):
		chain[1] = "by_register"
	case strings.HasSuffix(name, "table"):
		chain[1] = "by_table"
	case names[1] == "middle":
		chain = append(chain[:1], chain[2:]...)
	}
	k := len(chain) - 3
	if len(names) < len(chain) || !slices.Equal(names[:len(chain)], chain) || !slices.Equal(pcs[k:k+3], returns[:]) {
		t.Errorf("%s: %v %#x, want %v and %#x", name, names, pcs, chain, returns)
	}
	return text
}
