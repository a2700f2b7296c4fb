package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// Recorded dumps of .NET programs are made into dumps of the tiny format. What has
// no auxiliary vector, no NT_FILE, no list of the dynamic linker's, has the same
// threads and the same stacks in the same images.
func TestStacksOfTiny(t *testing.T) {
	images := corpus.Images(t)
	for _, path := range corpus.Dumps(t, `net10-(hello|crash-native-kernel|r2r)-x64|net10-hello-arm64`) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			opt := &loader.Options{Find: loader.DirFinder(images)}
			p, err := loader.Open(path, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			tiny := filepath.Join(t.TempDir(), "tiny")
			if err := os.WriteFile(tiny, loader.AsTiny(p), 0o600); err != nil {
				t.Fatal(err)
			}
			q, err := loader.Open(tiny, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			if p.Format != "elf-core" || q.Format != "tiny" {
				t.Fatalf("formats %s and %s", p.Format, q.Format)
			}
			want, got := stacksOf(p), stacksOf(q)
			if len(want) < 10 {
				t.Errorf("only %d lines of stacks", len(want))
			}
			for i, w := range want {
				if i >= len(got) || got[i] != w {
					t.Fatalf("line %d of %d: %s\nwant %s", i, len(want), slices.Concat(got, []string{"nothing"})[min(i, len(got))], w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d lines, want %d", len(got), len(want))
			}
		})
	}
}

// stacksOf returns the stacks of all threads, a line each frame: its kind, image
// and place in it, and how it was found. Only the auxiliary vector tells code that
// no unwind information describes from the code where the process began.
func stacksOf(p *loader.Process) (lines []string) {
	w := managed.Open(p, nil).NewWalker()
	var frames []managed.Frame
	for i := range p.Threads {
		t := &p.Threads[i]
		lines = append(lines, fmt.Sprintf("thread %d", t.ID))
		frames, stop := w.Walk(frames[:0], t)
		for _, f := range frames {
			in := "no image"
			if m := p.ImageAt(f.PC.Lookup()); m != nil && f.Kind == managed.Native {
				in = fmt.Sprintf("%s+%#x", m.ID.Name, f.PC.Addr-arch.Addr(m.Bias()))
			}
			lines = append(lines, fmt.Sprintf("%v %v %v %v %s", f.Kind, f.PC.Addr, f.SP, f.By, in))
		}
		if stop.Reason == unwind.EntryPoint || stop.Reason == unwind.NoRule {
			lines = append(lines, fmt.Sprintf("ends at %v, which no table describes", stop.PC))
			continue
		}
		lines = append(lines, fmt.Sprint(stop))
	}
	return lines
}
