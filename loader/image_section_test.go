package loader

import (
	"debug/elf"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// An ELF file of any bytes.
func FuzzELFFile(f *testing.F) {
	lib := elfFile(f, []string{"-nostdlib", "-gz=zlib", "-s"})
	f.Add(lib[:min(len(lib), 1<<14)], uint64(0x1000))
	f.Fuzz(func(t *testing.T, data []byte, at uint64) {
		e, err := objfile.ParseELF(data)
		if err != nil {
			return
		}
		s := &source{mapped: data, elf: e, p: &Process{}}
		m := &Image{Format: "elf", src: s, progs: e.Progs, mem: new(Memory), arch: arch.ByMachine(elf.EM_X86_64)}
		s.once.Do(func() {})
		m.FileView(arch.Addr(at), 16)
		for _, why := range []string{m.checkMaps(e.Progs, uint64(len(data))), m.checkDynamic(data, e.Progs)} {
			if why != "" {
				t.Errorf("a file is not its own: %s", why)
			}
		}
	})
}
