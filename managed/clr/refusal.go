package clr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seamwalk/seam/loader"
)

// refusal says why the runtime in img is not read, nil if there is none in it.
// unread is what was wrong with its descriptor, if it has one.
func refusal(p *loader.Process, img *loader.Image, unread error) error {
	oldest := releases[len(releases)-1].major
	if unread != nil || !slices.Contains(runtimeFiles, img.ID.Name) {
		return unread
	}
	if _, _, mono := img.Lookup(monoSymbol); mono {
		return fmt.Errorf("it is Mono, which is not read; %s", allTheSame)
	}
	r := newRuntime(p, img, "")
	if r.Version, _ = r.version(); r.Version != "" && r.major() < oldest {
		return fmt.Errorf("it is %s; runtimes before .NET %d are not read; %s", productName(r.Version), oldest, allTheSame)
	}
	_, _, exports := img.Lookup(dacTableSymbol)
	if _, _, has := img.Lookup(descriptorSymbol); exports && !has {
		return fmt.Errorf("it exports no contract descriptor, and is none of .NET %d: older ones are not read; %s", oldest, allTheSame)
	}
	return fmt.Errorf("it has no contract descriptor at hand (%s); --images with a folder that holds this file would supply it", buildName(&img.ID))
}

// allTheSame is what is read of a process whose runtime is not.
const allTheSame = "its stacks are walked as native ones, and images and native names are shown"

// productName returns what a version of CoreCLR is called: those of .NET Core 1 to
// 3 count on from .NET Framework's, as 4.6.26515 and 4.700.19.
func productName(version string) string {
	for _, old := range []struct{ version, name string }{{"4.700.", ".NET Core 3"}, {"4.", ".NET Core 2 or older"}, {"5.", ".NET 5"}} {
		if strings.HasPrefix(version, old.version) {
			return old.name
		}
	}
	return ".NET " + version
}

// monoSymbol is exported by every Mono; the one that .NET ships for phones and
// browsers has the name of CoreCLR's file.
const monoSymbol = "mono_get_root_domain"

// strangers are the files of runtimes that are not read, and what they tell of a
// process. The last one has the 64-bit part of a process of 32 bits.
var strangers = map[string]string{
	"clr.dll":               framework,
	"mscorwks.dll":          framework,
	"libmonosgen-2.0.so":    mono,
	"libmonosgen-2.0.so.1":  mono,
	"libmonoboehm-2.0.so.1": mono,
	"mono-2.0-sgen.dll":     mono,
	"mono-2.0-bdwgc.dll":    mono,
	"mono-sgen":             mono,
	"wow64.dll":             "the program is one of 32 bits (WOW64), whose own stacks are not read",
}

const (
	framework = "the runtime is that of the .NET Framework, which is not read"
	mono      = "the runtime is Mono, which is not read"
)

// refused tells of the runtimes in p that are no CoreCLR and are not read.
func refused(p *loader.Process) (warns []loader.Warning) {
	told := map[string]bool{}
	for _, img := range p.Images {
		name := strings.ToLower(img.ID.Name)
		what, ok := strangers[name]
		if !ok || told[what] {
			continue
		}
		told[what] = true
		warns = append(warns, loader.Warning{Code: "runtime_unreadable", Off: -1,
			Text: fmt.Sprintf("%s: %s; %s", img.ID.Name, what, allTheSame)})
	}
	return warns
}
