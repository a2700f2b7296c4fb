package loader

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
)

// A range of addresses and whether /proc/pid/maps had it executable.
type access struct {
	arch.Span
	exec bool
}

// recordedMaps reads /proc/pid/maps of a recorded dump.
func recordedMaps(t *testing.T, path string) (list []access) {
	z, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec, _ := zstd.NewReader(nil)
	text, err := dec.DecodeAll(z, nil)
	if err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		var m access
		if n, _ := fmt.Sscanf(sc.Text(), "%x-%x", &m.Lo, &m.Hi); n == 2 && len(f) > 1 {
			m.exec = strings.Contains(f[1], "x")
			list = append(list, m)
		}
	}
	return list
}

// What is said to be executable, and what is said not to be, is so by the
// process's own /proc/pid/maps, with and without the files of its images, and
// whoever wrote the dump. Each page is asked for.
func TestExecutableCorpus(t *testing.T) {
	for _, dump := range corpus.Dumps(t, "") {
		maps := filepath.Join(filepath.Dir(dump), "maps.zst")
		if _, err := os.Stat(maps); err != nil {
			continue
		}
		truth := recordedMaps(t, maps)
		for _, find := range []Finder{nil, DirFinder(corpus.Images(t))} {
			p, err := Open(dump, &Options{Find: find})
			if err != nil {
				t.Fatal(err)
			}
			code, data, unknown, bare := 0, 0, 0, 0
			for i, m := range truth {
				if m.Hi-m.Lo > 1<<26 {
					continue // reserved for the heap of objects
				}
				for a := m.Lo; a < m.Hi; a += pageSize {
					exec, known := p.Executable(a)
					switch {
					case known && exec != m.exec || exec && !known:
						t.Errorf("%s: Executable(%v) = %v, %v; it lies in %v, executable %v", dump, a, exec, known, m.Span, m.exec)
					case !known && m.exec:
						bare++
					case !known:
						unknown++
					case exec:
						code++
					default:
						data++
					}
				}
				if m.Hi != 0x7ffffff10000 && (i+1 == len(truth) || truth[i+1].Lo > m.Hi) {
					if exec, _ := p.Executable(m.Hi); exec {
						t.Errorf("%s: %v is said to be executable; nothing is mapped there", dump, m.Hi)
					}
				}
			}
			t.Logf("%s, files %v: of pages with code %d are known, %d not; of others %d and %d", dump, find != nil, code, bare, data, unknown)
			if code < 500 || data < 4000 {
				t.Errorf("%s: %d executable, %d not", dump, code, data)
			}
			p.Close()
		}
	}
}

// What no mapping tells: low addresses and those of the kernel run no code,
// others none only if the core lists all mappings.
func TestExecutableUnlisted(t *testing.T) {
	code := buildLoad{addr: 0x400000, data: fill(64, 0), flags: elf.PF_R | elf.PF_X}
	data := buildLoad{addr: 0x600000, data: fill(64, 0), flags: elf.PF_R | elf.PF_W}
	guard := buildLoad{addr: 0x700000, mem: 0x1000}
	type answer struct{ exec, known bool }
	yes, no, unknown := answer{true, true}, answer{false, true}, answer{}
	for _, c := range []struct {
		name  string
		loads []buildLoad
		maps  []fileNote
		want  map[arch.Addr]answer
	}{
		{"lists only what it dumps", []buildLoad{code, data}, nil, map[arch.Addr]answer{
			0: no, 0x1000: no, 0x400010: yes, 0x600010: no, 0x800000: unknown,
			0x7fff00000000: unknown, 1 << 60: no, ^arch.Addr(0): no, 0xffffffffff600400: unknown}},
		{"lists all", []buildLoad{code, data, guard}, nil, map[arch.Addr]answer{
			0: no, 0x400010: yes, 0x600010: no, 0x700010: no, 0x800000: no, 0x7fff00000000: no,
			0x8000000000000000: no, 0xffffffffff600400: unknown}},
		{"lists files beside", []buildLoad{code, data, guard},
			[]fileNote{{Span: arch.Span{Lo: 0x800000, Hi: 0x802000}, path: "/data"}},
			map[arch.Addr]answer{0x800010: unknown, 0x802000: no}},
		{"marks no code", []buildLoad{data, guard}, nil, map[arch.Addr]answer{
			0x600010: unknown, 0x700010: unknown, 0x800000: no, 8: no}},
	} {
		b := buildCore{loads: c.loads}
		b.thread(1, 0x400000, 0x600000)
		if c.maps != nil {
			b.mapped(c.maps...)
		}
		p := b.open(t, nil)
		for a, want := range c.want {
			var got answer
			if got.exec, got.known = p.Executable(a); got != want {
				t.Errorf("%s: Executable(%v) = %+v, want %+v", c.name, a, got, want)
			}
		}
	}
}

// A core whose list of segments is cut does not tell what was not mapped.
func TestExecutableCut(t *testing.T) {
	b := buildCore{loads: []buildLoad{
		{addr: 0x400000, mem: 0x1000, flags: elf.PF_R | elf.PF_X},
		{addr: 0x600000, mem: 0x1000, flags: elf.PF_R | elf.PF_X},
	}}
	b.thread(1, 0x400000, 0)
	p := b.open(t, &Options{Limits: Limits{Segments: 2}}) // the note's and the first
	if exec, known := p.Executable(0x600000); exec || known {
		t.Errorf("Executable = %v, %v of a mapping that was not read", exec, known)
	}
}

// Nothing was mapped where a SEGV_MAPERR says so.
func TestExecutableFault(t *testing.T) {
	for code, want := range map[int32]bool{siMapErr: true, 2: false} {
		b := buildCore{loads: []buildLoad{{addr: 0x400000, data: fill(64, 0), flags: elf.PF_R | elf.PF_X}}}
		b.thread(1, 0x900000, 0)
		info := make([]byte, 128)
		info[0], info[8], info[18] = sigSegv, byte(code), 0x90
		b.note("CORE", ntSigInfo, info)
		p := b.open(t, nil)
		if exec, known := p.Executable(0x900000); exec || known != want {
			t.Errorf("code %d: Executable = %v, %v", code, exec, known)
		}
		if _, known := p.Executable(0x900008); known {
			t.Errorf("code %d: another address is known too", code)
		}
	}
}

// A trimmed core says what the whole one said, of code that came from a file
// as well, and where pages of different permissions lie side by side.
func TestExecutableTrimmed(t *testing.T) {
	page := make([]byte, pageSize)
	b := buildCore{loads: []buildLoad{
		{addr: 0x400000, data: page, flags: elf.PF_R},
		{addr: 0x401000, data: page, flags: elf.PF_R | elf.PF_X},
		{addr: 0x402000, data: page, flags: elf.PF_R | elf.PF_W},
		{addr: 0x500000, mem: 0x1000},
	}}
	b.thread(1, 0x401000, 0x402000)
	p := b.open(t, &Options{Track: true})
	at := []arch.Addr{0x400010, 0x401010, 0x402010, 0x500010, 0x600010, 8}
	type answer struct{ exec, known bool }
	var want []answer
	for _, a := range at {
		exec, known := p.Executable(a)
		want = append(want, answer{exec, known})
	}
	for range 2 {
		p, _ = retrim(t, p, Kept{})
		for i, a := range at {
			if exec, known := p.Executable(a); exec != want[i].exec || known != want[i].known {
				t.Errorf("Executable(%v) = %v, %v in the trimmed core, %v in the whole one", a, exec, known, want[i])
			}
		}
	}

	// What is not known is not known in the trimmed core either, though what
	// made it so was not read.
	b.loads = b.loads[:3]
	p = b.open(t, &Options{Track: true})
	for range 2 {
		if exec, known := p.Executable(0x402010); exec || known {
			t.Errorf("Executable = %v, %v beside other permissions", exec, known)
		}
		p, _ = retrim(t, p, Kept{})
	}

	q := library(t, elfFile(t, nil), false)
	a, _, ok := q.Images[0].Lookup("exported")
	if _, there := q.Memory.Word(a); !ok || !there {
		t.Fatal("the library has no function")
	}
	if exec, known := q.Executable(a); !exec || !known {
		t.Errorf("Executable of a function = %v, %v", exec, known)
	}
	r, _ := retrim(t, q, Kept{})
	if exec, known := r.Executable(a); !exec || !known {
		t.Errorf("Executable of a function = %v, %v in the trimmed core", exec, known)
	}
}
