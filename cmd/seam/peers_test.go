//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
)

// BenchmarkPeers lets this program, eu-stack and gdb print all stacks of a dump, in
// turn. It reports how many times longer the other two take, how many frames each
// printed, and this program's largest memory. gdb gets a sysroot with all image
// files. Neither of the other two knows managed code (gdb stops at JIT-compiled
// code), so they have less to do.
func BenchmarkPeers(b *testing.B) {
	recorded := corpus.Path(b)
	images := b.TempDir()
	unpackTree(b, filepath.Join(recorded, "images"), images)
	seam := filepath.Join(b.TempDir(), "seam")
	build := exec.Command("go", "build", "-o", seam, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"net10-scenarios-x64/normal", "deep-dotnet-x64/dump"} {
		b.Run(filepath.Dir(name), func(b *testing.B) {
			dump := filepath.Join(b.TempDir(), "core")
			unpackFile(b, filepath.Join(recorded, name+".zst"), dump)
			root, exe := sysroot(b, dump, images)
			peers := []*peer{
				{name: "seam", frame: regexp.MustCompile(`(?m)^ +\d+ {2}0x`),
					cmd: []string{seam, "stacks", "--images", images, dump}},
				{name: "eu-stack", frame: regexp.MustCompile(`(?m)^#\d`),
					cmd: []string{"eu-stack", "-n", "0", "--core", dump}},
				{name: "gdb", frame: regexp.MustCompile(`(?m)^#\d`),
					cmd: []string{"gdb", "-nx", "-batch", "-iex", "set sysroot " + root, "-iex", "set debuginfod enabled off", exe, dump, "-ex", "thread apply all bt"}},
			}
			for _, p := range peers {
				if _, err := exec.LookPath(p.cmd[0]); err != nil {
					b.Skipf("no %s here", p.cmd[0])
				}
			}
			// The first round warms up, for all alike.
			for range max(3, min(b.N, 5)) + 1 {
				for _, p := range peers {
					p.run(b)
				}
			}
			for _, p := range peers {
				b.ReportMetric(float64(p.frames), p.name+"-frames")
				if p != peers[0] {
					b.ReportMetric(float64(p.median())/float64(peers[0].median()), p.name+"/seam")
				}
			}
			b.ReportMetric(float64(peers[0].median().Microseconds())/1000, "seam-ms")
			b.ReportMetric(float64(peers[0].rss)/1024, "seam-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A peer is a program that shows the stacks of a dump.
type peer struct {
	name   string
	cmd    []string
	frame  *regexp.Regexp // matches a line of output with a frame
	times  []time.Duration
	frames int
	rss    int64 // kilobytes
}

func (p *peer) run(b *testing.B) {
	// The output goes to a file. Through a pipe this process would have to read it,
	// which would take time from the program that prints.
	out, err := os.Create(filepath.Join(b.TempDir(), p.name))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(p.cmd[0], p.cmd[1:]...)
	cmd.Stdout = out
	start := time.Now()
	err = cmd.Run()
	p.times = append(p.times, time.Since(start))
	// eu-stack exits with 1 if it did not see a stack to its end.
	if err != nil && p.name == "seam" {
		b.Fatalf("%v: %v", p.cmd, err)
	}
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		b.Fatal(err)
	}
	p.frames = len(p.frame.FindAll(printed, -1))
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.rss = max(p.rss, u.Maxrss)
	}
}

func (p *peer) median() time.Duration {
	t := slices.Sorted(slices.Values(p.times[1:]))
	return t[len(t)/2]
}

// sysroot makes a tree with the images of a dump at the paths that the dump
// names, and returns it and the executable in it.
func sysroot(b *testing.B, dump, images string) (root, exe string) {
	p, err := loader.Open(dump, &loader.Options{Find: loader.DirFinder(images)})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	root = b.TempDir()
	for _, img := range p.Images {
		file, _, _ := img.File()
		if file == "" || img.Path == "" {
			continue
		}
		at := filepath.Join(root, img.Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		os.Symlink(file, at) // some are mapped twice
		if exe == "" && img.Format == "elf" {
			exe = at // the image at the lowest address
		}
	}
	return root, exe
}

func unpackTree(b *testing.B, from, to string) {
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		at := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if filepath.Ext(at) != ".zst" {
			abs, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			return os.Symlink(abs, at)
		}
		unpackFile(b, path, at[:len(at)-len(".zst")])
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// unpackFile lets the program zstd unpack a file. Unpacking takes a window of up to
// 2 GiB, and the largest memory of a child process counts what the process had that
// it was forked from (getrusage(2); ru_maxrss is kept over execve(2)). If this
// process unpacked, 2 GiB would be the figure of every program that is measured.
func unpackFile(b *testing.B, from, to string) {
	if _, err := exec.LookPath("zstd"); err != nil {
		b.Skip("no zstd here")
	}
	if out, err := exec.Command("zstd", "-q", "-d", "--long=31", "--sparse", "-o", to, from).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}
