package managed_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// A walk that comes to the function that the process began in is complete, where
// no unwind information says so.
func TestEntryPoint(t *testing.T) {
	source, err := filepath.Abs("testdata/entry.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		compiler string
		flags    []string
		crash    crasher
	}{
		{"gcc", []string{"-static"}, linuxCore},
		{"gcc", []string{"-static-pie", "-fPIE"}, linuxCore},
		{"aarch64-linux-gnu-gcc", []string{"-static"}, ownCore("qemu-aarch64")},
	} {
		t.Run(c.compiler+c.flags[0], func(t *testing.T) {
			cc := tool(t, c.compiler)
			if c.compiler == "aarch64-linux-gnu-gcc" {
				tool(t, "qemu-aarch64")
			}
			dir := t.TempDir()
			prog := filepath.Join(dir, "entry")
			args := append([]string{"-O1", "-nostdlib", "-nostartfiles", "-fno-stack-protector", "-o", prog, source}, c.flags...)
			if msg, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
				t.Skipf("%s: %v: %s", cc, err, msg)
			}
			core, out := c.crash(t, dir, prog)
			p, err := loader.Open(core, &loader.Options{Find: loader.MultiFinder(loader.BesideFinder(core), loader.PathFinder())})
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			defer p.Close()
			fs, stop := stackOf(p)
			sym := symbolize.New(p)
			var names []string
			for _, f := range fs {
				_, n := sym.Native(f.PC)
				names = append(names, n.Function)
			}
			if stop.Reason != unwind.EntryPoint || len(names) != 3 || names[0] != "crash" || names[1] != "begin" || names[2] != "_start" {
				t.Errorf("%v %+v", names, stop)
			}
		})
	}
}

// Every thread of .NET programs for ARM64, whose host was built with a _start
// that no table describes, is walked to its end.
func TestEntryPointCorpus(t *testing.T) {
	for _, dump := range corpus.Dumps(t, "^net10-(hello|scenarios|r2r)-arm64/") {
		p, err := loader.Open(dump, &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
		if err != nil {
			t.Fatal(err)
		}
		began := 0
		w := managed.Open(p, nil).NewWalker()
		for i := range p.Threads {
			_, stop := w.Walk(nil, &p.Threads[i])
			if !stop.Reason.Complete() {
				t.Errorf("%s: thread %d: %+v", dump, p.Threads[i].ID, stop)
			}
			if stop.Reason == unwind.EntryPoint {
				began++
			}
		}
		if began != 1 {
			t.Errorf("%s: %d threads began the process", dump, began)
		}
		p.Close()
	}
}
