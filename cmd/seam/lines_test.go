//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
)

// BenchmarkLines shows the stacks of a dump with all image files, without PDBs and
// with those of its program, in turns. Besides times it has the ratio of the two,
// lines/without, which is to stay below 1.3.
func BenchmarkLines(b *testing.B) {
	recorded, images := corpus.Path(b), corpus.Images(b)
	seam := filepath.Join(b.TempDir(), "seam")
	build := exec.Command("go", "build", "-o", seam, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	dump := filepath.Join(b.TempDir(), "core")
	unpackFile(b, filepath.Join(recorded, "net10-scenarios-x64", "normal.zst"), dump)
	without := []string{seam, "stacks", "--images", "none", "--images", filepath.Join(images, "elf"), "--images", filepath.Join(images, "pe"), dump}
	peers := []*peer{
		{name: "without", frame: regexp.MustCompile(`(?m)^ +\d+ {2}0x`), cmd: without},
		{name: "lines", frame: regexp.MustCompile(`(?m)\.cs:\d+$`), cmd: append(without, "--images", filepath.Join(images, "pdb"))},
	}
	// The first round warms up, for both alike.
	for range max(5, min(b.N, 25)) + 1 {
		for _, p := range peers {
			p.run(b)
		}
	}
	if peers[1].frames < 5000 {
		b.Errorf("%d frames with a line", peers[1].frames)
	}
	b.ReportMetric(float64(peers[1].median())/float64(peers[0].median()), "lines/without")
	for _, p := range peers {
		b.ReportMetric(float64(p.median().Microseconds())/1000, p.name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
}
