package clr

import (
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
)

// TestModuleName: a module has its path; where the dump lacks that the name of its
// file, and where it has none its simple name, and at last what its metadata say.
func TestModuleName(t *testing.T) {
	const file, simple = fakePath + 0x1000, fakePath + 0x2000
	made := func() *fakeTypes {
		f := newFakeTypes(t)
		f.word(field(fakeModule, f.n.ModFile), file)
		f.utf16(file, "bundled.dll")
		f.word(field(fakeModule, f.n.ModPath-8), simple) // where .NET 10 has it
		f.bytes(simple, []byte("Simple\x00"))
		return f
	}
	for _, test := range []struct {
		what   string
		change func(f *fakeTypes)
		want   string
	}{
		{"its path", func(*fakeTypes) {}, "/app/scenarios.dll"},
		{"no path", func(f *fakeTypes) { f.put(fakePath, 0, 2) }, "bundled.dll"},
		{"a path that is missing", func(f *fakeTypes) { delete(f.fakeMemory, fakePath+8) }, "bundled.dll"},
		{"neither path nor file", func(f *fakeTypes) { f.put(fakePath, 0, 2); f.put(file, 0, 2) }, "Simple"},
		{"no name but the metadata's", func(f *fakeTypes) { f.put(fakePath, 0, 2); f.put(file, 0, 2); f.put(simple, 0, 1) }, "scenarios"},
	} {
		f := made()
		test.change(f)
		r := fakeRuntime(t, f.core(t))
		if m := r.module(fakeModule); m.name != test.want || m.err != nil {
			t.Errorf("%s: %q, %v; want %q", test.what, m.name, m.err, test.want)
		}
	}
}

// TestModuleMetadata: metadata that cannot be read is an error that says where.
func TestModuleMetadata(t *testing.T) {
	for what, change := range map[string]func(f *fakeTypes){
		"image's address":     func(f *fakeTypes) { delete(f.fakeMemory, field(fakeModule, f.n.ModBase)) },
		"address of its meta": func(f *fakeTypes) { delete(f.fakeMemory, field(fakeModule, f.n.ModDynamic)) },
		"neither an image":    func(f *fakeTypes) { f.word(field(fakeModule, f.n.ModDynamic), 0) },
		"metadata root":       func(f *fakeTypes) { delete(f.fakeMemory, fakeImage+8) },
	} {
		f := newFakeTypes(t)
		change(f)
		r := fakeRuntime(t, f.core(t))
		if meta, err := r.metadata(fakeModule); meta != nil || err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, %v", what, meta, err)
		} else if lack, ok := err.(*ecma.Error); ok && (!lack.Missing || lack.At == 0) {
			t.Errorf("%s: %+v", what, lack)
		}
	}
}

// TestModulesOfRecordedDumps: the modules that the domain's list and the images
// give are those whose names end in .dll, and each method of one leads back to it.
func TestModulesOfRecordedDumps(t *testing.T) {
	for _, name := range recorded {
		_, r := openRecorded(t, name)
		seen, methods := map[string]bool{}, 0
		r.loadedModules(r.mem, func(a, _ arch.Addr) bool {
			m := r.module(a)
			seen[m.name] = true
			r.methodMap(r.mem, a, func(first, count uint32, table arch.Addr) bool {
				for rid := max(first, 1); rid < first+min(count, 2000); rid++ {
					md := r.methodDef(a, rid)
					if md == 0 {
						continue
					}
					if d, err := r.MethodAt(md); err == nil {
						if methods++; d.Module != m.name || d.Token != 0x06000000|rid {
							t.Errorf("%s: method %d of %s is %#x of %s", name, rid, m.name, d.Token, d.Module)
						}
					}
				}
				return true
			})
			return true
		})
		if t.Logf("%s: %d modules, %d methods", name, len(seen), methods); len(seen) < 2 || methods < 50 {
			t.Errorf("%s: %d modules, %d methods", name, len(seen), methods)
		}
	}
}
