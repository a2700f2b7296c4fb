package loader_test

import (
	"os"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/objfile"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

// A file alone gives the rules that the same image gives in a process: for code
// all over the images of recorded dumps, ELF and PE, what is found is equal.
func TestRulesOfFileAsOfProcess(t *testing.T) {
	for _, dump := range []string{"net10-hello-x64/normal.zst", "net10-r2r-x64/normal.zst", "net10-hello-arm64/dump.zst", "net10-r2r-arm64/dump.zst"} {
		p, err := loader.Open(corpus.Path(t, dump), &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var images []unwind.Image
		for _, m := range p.Images {
			if !m.Flat {
				images = append(images, m)
			}
		}
		abi := p.Arch.On(arch.Linux)
		process := unwind.New(abi, p.Memory, images, nil)
		compared, kinds := 0, map[unwind.By]int{}
		for _, m := range p.Images {
			path, _, _ := m.File()
			if m.Flat || path == "" || !m.Verified() {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if bundled := m.Format == "pe" && data[0] != 'M'; bundled {
				continue // an assembly within the program's file
			}
			img, err := objfile.NewImage(data, m.Bias())
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			alone := unwind.New(abi, img, []unwind.Image{img}, nil)
			for a := m.Span().Lo + 1; a < m.Span().Hi; a += 4093 {
				if exec, _ := img.Executable(a); !exec {
					continue
				}
				pc := arch.PC{Addr: a}
				want, by, out, why := process.RuleAt(pc)
				got, by2, out2, why2 := alone.RuleAt(pc)
				if got != want || by != by2 || out != out2 || why != why2 {
					t.Errorf("%s: %v: %+v %v %v %v, in the process %+v %v %v %v", path, a, got, by2, out2, why2, want, by, out, why)
				}
				if out == unwind.UseRule {
					kinds[by]++
				}
				compared++
			}
		}
		t.Logf("%s: %d addresses compared: %v", dump, compared, kinds)
		if kinds[unwind.ByEhFrame] < 100 {
			t.Errorf("%s: rules by %v", dump, kinds)
		}
	}
}
