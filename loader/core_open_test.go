package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// What is no dump is refused, with a word about what it is.
func TestNotADump(t *testing.T) {
	lib := elfFile(t, nil)
	cut := new(buildCore).bytes()[:40]
	big := new(buildCore).bytes()
	big[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	big[16], big[17] = 0, byte(elf.ET_CORE)
	narrow := new(buildCore).bytes()
	narrow[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	other := (&buildCore{machine: elf.EM_RISCV}).bytes()
	some := &buildCore{loads: []buildLoad{{addr: 0x1000, data: make([]byte, 64)}}}
	netbsd := &buildCore{loads: some.loads}
	netbsd.note("NetBSD-CORE", 1, make([]byte, 160))
	netbsd.note("NetBSD-CORE@1", 33, make([]byte, 208))
	freebsd := some.bytes()
	freebsd[elf.EI_OSABI] = byte(elf.ELFOSABI_FREEBSD)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty"},
		{"text", []byte("hello, world"), "68 65 6c 6c"},
		{"library", lib, "not a core"},
		{"PE", []byte("MZ\x90\x00"), "PE program"},
		{"xz", []byte("\xfd7zXZ\x00"), "xz"},
		{"header cut", cut, "no whole ELF header"},
		{"big-endian", big, "big-endian"},
		{"32 bits", narrow, "32 bits (EM_"},
		{"another CPU", other, "EM_RISCV"},
		{"nothing", new(buildCore).bytes(), "neither a thread nor memory"},
		{"100 bytes", some.bytes()[:100], "the file ends within its program headers: 0 of 2 are there"},
		{"NetBSD", netbsd.bytes(), "a core of NetBSD"},
		{"FreeBSD", freebsd, "a core of FreeBSD"},
	} {
		_, err := openBytes(c.name, c.data, Options{Limits: Limits{}.withDefaults()})
		var fe *FormatError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrFormat) && !errors.As(err, &fe) {
			t.Errorf("%s: %v, want something with %q", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Threads have their registers, the process its name, the crash its address.
func TestNotes(t *testing.T) {
	var b buildCore
	ps := make([]byte, 136)
	binary.LittleEndian.PutUint32(ps[24:], 42)
	copy(ps[40:], "exactly15chars!")
	b.note("CORE", ntPRPSInfo, ps)
	b.thread(42, 0x1234, 0x7000)
	si := make([]byte, 128)
	binary.LittleEndian.PutUint32(si, 11)
	binary.LittleEndian.PutUint32(si[8:], 1)
	binary.LittleEndian.PutUint64(si[16:], 0xbad0)
	b.note("CORE", ntSigInfo, si)
	b.note("VENDOR", ntPRStatus, make([]byte, 400))
	b.thread(43, 0x5678, 0x8000)
	p := b.open(t, nil)
	if p.PID != 42 || p.Name != "exactly15chars!" || len(p.Threads) != 2 || p.Threads[1].ID != 43 {
		t.Errorf("pid %d, name %q, threads %v", p.PID, p.Name, p.Threads)
	}
	if pc, ok := p.Threads[0].Regs.Get(p.Arch.PC); !ok || pc != 0x1234 {
		t.Errorf("pc %#x %v", pc, ok)
	}
	if want := (Crash{Thread: 42, Signal: 11, Code: 1, Address: 0xbad0, HasAddr: true}); p.Crash == nil || *p.Crash != want {
		t.Errorf("crash %+v", p.Crash)
	}
}

// A signal that the kernel sent without telling an address has none: 0 would be
// a null pointer.
func TestNoFaultAddress(t *testing.T) {
	for _, c := range []struct {
		code  int32
		known bool
	}{{1, true}, {siKernel, false}, {0, false}, {-6, false}} { // SEGV_MAPERR, SI_KERNEL, SI_USER, SI_TKILL
		var b buildCore
		b.thread(42, 0x1234, 0x7000)
		si := make([]byte, 128)
		binary.LittleEndian.PutUint32(si, 11)
		binary.LittleEndian.PutUint32(si[8:], uint32(c.code))
		b.note("CORE", ntSigInfo, si)
		if p := b.open(t, nil); p.Crash == nil || p.Crash.Code != c.code || p.Crash.HasAddr != c.known {
			t.Errorf("si_code %d: %+v", c.code, p.Crash)
		}
	}
}

// More than 65,534 segments are counted in section header 0, and when that is
// cut off the count that fits is taken.
func TestPNXNum(t *testing.T) {
	b := buildCore{xnum: true}
	for i := range 70_000 {
		b.loads = append(b.loads, buildLoad{addr: uint64(i+1) * 2 * pageSize, mem: pageSize, flags: elf.PF_R})
	}
	b.loads[69_999].data = fill(8, 7)
	b.thread(1, 0, 0)
	p := b.open(t, nil)
	if v, ok := p.Memory.Word(arch.Addr(70_000 * 2 * pageSize)); !ok || v != 0x0e0d0c0b0a090807 || warned(p, "core_cut") {
		t.Errorf("the last segment: %#x %v, %v", v, ok, p.Warnings)
	}
}

// A claim of more than there is makes a warning, not room.
func TestHostileCounts(t *testing.T) {
	good := func() *buildCore {
		b := &buildCore{loads: []buildLoad{{addr: 0x1000, data: fill(64, 0)}}}
		b.thread(1, 0, 0)
		return b
	}
	for _, c := range []struct {
		name, code string
		edit       func(b []byte) []byte
	}{
		{"phnum", "core_cut", func(b []byte) []byte { binary.LittleEndian.PutUint16(b[56:], 60_000); return b }},
		{"p_filesz", "core_cut", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[64+56+32:], 1<<62); return b }},
		{"p_offset", "core_cut", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[64+56+8:], 1<<63); return b }},
		{"p_vaddr", "segment_bad", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[64+56+16:], 1<<64-8); return b }},
		{"note", "note_bad", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[64+2*56+4:], 1<<31); return b }},
	} {
		p, err := openBytes(c.name, c.edit(good().bytes()), Options{Limits: Limits{}.withDefaults()})
		if err != nil || !warned(p, c.code) {
			t.Errorf("%s: %v, %v", c.name, err, p)
		}
	}
	b := good()
	b.note("CORE", ntFile, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<60), pageSize))
	if p := b.open(t, nil); !warned(p, "note_bad") {
		t.Error("NT_FILE of 2^60 entries passes")
	}
}

// Wherever a real core is cut, what comes before the cut can be used, and the
// warning says where it is cut.
func TestCut(t *testing.T) {
	path := unpacked(t, "net10-hello-x64/normal.zst")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Limits: Limits{}.withDefaults()}
	whole, err := openBytes("whole", data, opt)
	if err != nil {
		t.Fatal(err)
	}
	var notes extent
	for _, b := range whole.core.notes {
		notes = extent{off: uint64(cap(data) - cap(b)), n: uint64(len(b))}
	}
	for n := 0; n < len(data); n += pageSize {
		p, err := openBytes("cut", data[:n:n], opt)
		if n < objfile.ELFHeaderSize {
			if err == nil {
				t.Errorf("cut at %#x: opens", n)
			}
			continue
		}
		if err != nil {
			// Nothing is left that could be used, and the error says why.
			if fe := (*FormatError)(nil); !errors.As(err, &fe) || !strings.Contains(err.Error(), "the file ends") || uint64(n) > notes.off+notes.n {
				t.Fatalf("cut at %#x: %v", n, err)
			}
			continue
		}
		if len(p.Threads) == 0 && len(p.Memory.segs) == 0 {
			t.Errorf("cut at %#x: opens with nothing", n)
		}
		if !warned(p, "core_cut") {
			t.Errorf("cut at %#x: no warning", n)
		}
		for _, m := range p.Images {
			m.Table(".eh_frame")
			m.Lookup("malloc")
		}
		for _, s := range p.Memory.segs {
			if w := whole.Memory.dumped(s.lo); !bytes.Equal(s.data, w[:len(s.data)]) {
				t.Fatalf("cut at %#x: other bytes at %v", n, s.lo)
			}
		}
	}
}

// A packed dump is the dump, and leaves no temporary file behind.
func TestPacked(t *testing.T) {
	b := buildCore{loads: []buildLoad{{addr: 0x1000, data: make([]byte, 1<<20)}, {addr: 0x900000, data: fill(64, 1)}}}
	b.thread(7, 1, 2)
	raw := b.bytes()
	dir := t.TempDir()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for _, k := range []struct {
		name string
		pack func(io.Writer) io.WriteCloser
	}{
		{"zstd", func(w io.Writer) io.WriteCloser {
			z, _ := zstd.NewWriter(w)
			return z
		}},
		{"gzip", gzipWriter},
	} {
		var buf bytes.Buffer
		w := k.pack(&buf)
		w.Write(raw)
		w.Close()
		path := filepath.Join(dir, k.name)
		for _, cut := range []int{0, 5} {
			if err := os.WriteFile(path, buf.Bytes()[:buf.Len()-cut], 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Open(path, nil)
			if err != nil {
				// So little may be left that nothing can be shown.
				if cut == 0 {
					t.Errorf("%s: %v", k.name, err)
				}
				continue
			}
			if v, ok := p.Memory.Word(0x900000); cut == 0 && (!ok || v != 0x0807060504030201 || len(p.Threads) != 1) {
				t.Errorf("%s: %#x %v %d", k.name, v, ok, len(p.Threads))
			}
			p.Close()
		}
		_, err := Open(path, &Options{Limits: Limits{Unpacked: 1 << 16}})
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: a limit of 64 KB: %v", k.name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// Standard input is read from a pipe, plain or packed, and mapped if it is a file.
func TestStdin(t *testing.T) {
	b := buildCore{loads: []buildLoad{{addr: 0x900000, data: fill(64, 1)}}}
	b.thread(7, 1, 2)
	enc, _ := zstd.NewWriter(nil)
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, data := range [][]byte{b.bytes(), enc.EncodeAll(b.bytes(), nil)} {
		for _, pipe := range []bool{true, false} {
			if pipe {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				go func() { w.Write(data); w.Close() }()
				os.Stdin = r
			} else {
				path := filepath.Join(t.TempDir(), "core")
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				os.Stdin = f
			}
			p, err := Open("-", nil)
			os.Stdin.Close()
			if err != nil {
				t.Errorf("pipe %v: %v", pipe, err)
				continue
			}
			if v, ok := p.Memory.Word(0x900000); !ok || v != 0x0807060504030201 {
				t.Errorf("pipe %v: %#x %v", pipe, v, ok)
			}
			p.Close()
		}
	}
}

// The core that a kernel, gcore, createdump or qemu wrote says what readelf
// and /proc/pid/maps say.
func TestCorpusThreads(t *testing.T) {
	for _, c := range []struct {
		dump    string
		threads int
		pid     int
		crash   string
	}{
		{"net10-hello-x64/normal.zst", 18, 3676, "<nil>"},
		{"net10-crash-native-kernel-x64/kernel.zst", 7, 20839, "&{20839 11 1 0x8 true}"},
		{"net10-hello-arm64/dump.zst", 17, 22790, "&{23255 6 0 0x0 false}"},
	} {
		p, err := Open(corpus.Path(t, c.dump), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Crash); len(p.Threads) != c.threads || p.PID != c.pid || got != c.crash {
			t.Errorf("%s: %d threads, pid %d, crash %s", c.dump, len(p.Threads), p.PID, got)
		}
		for _, th := range p.Threads {
			sp, _ := th.Regs.Get(p.Arch.SP)
			if _, ok := p.Memory.Word(arch.Addr(sp)); !ok {
				t.Errorf("%s: thread %d: no word at its sp %#x", c.dump, th.ID, sp)
			}
		}
		p.Close()
	}
}

// readelf finds as many threads.
func TestReadelf(t *testing.T) {
	path := unpacked(t, "net10-hello-x64/normal.zst")
	out, err := exec.Command("readelf", "-nW", path).Output()
	if err != nil {
		t.Skip("readelf:", err)
	}
	p, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if n := strings.Count(string(out), "NT_PRSTATUS"); n != len(p.Threads) {
		t.Errorf("%d threads, readelf has %d", len(p.Threads), n)
	}
}

// sparseCore writes a core whose one large segment is a hole of the file.
func sparseCore(b *testing.B, size int64) string {
	c := new(buildCore)
	for i := range 100 {
		c.thread(uint32(i), 1, 2)
	}
	for i := range 300 {
		c.loads = append(c.loads, buildLoad{addr: 0x1000000 + uint64(i)*2*pageSize, data: fill(pageSize, 1)})
	}
	data := c.bytes()
	// Make the last segment the large one.
	last := data[objfile.ELFHeaderSize+300*objfile.ProgSize:]
	binary.LittleEndian.PutUint64(last[16:], 0x7f0000000000)
	binary.LittleEndian.PutUint64(last[32:], uint64(size))
	binary.LittleEndian.PutUint64(last[40:], uint64(size))
	path := filepath.Join(b.TempDir(), "core")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(data))+size); err != nil {
		b.Skip(err)
	}
	return path
}

// The cost of opening does not depend on the size of the dump.
func BenchmarkOpen(b *testing.B) {
	for _, s := range []struct {
		name string
		size int64
	}{{"64MB", 64 << 20}, {"64GB", 64 << 30}} {
		path := sparseCore(b, s.size)
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				p, err := Open(path, nil)
				if err != nil || len(p.Threads) != 100 || warned(p, "core_cut") {
					b.Fatal(err, p.Warnings)
				}
				p.Close()
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	b := buildCore{loads: []buildLoad{{addr: 0x1000, data: fill(64, 0)}, {addr: 0x1020, data: fill(64, 9), mem: 4096, flags: elf.PF_W}}}
	b.thread(1, 0x1000, 0x1020)
	b.note("CORE", ntAuxv, bytes.Repeat([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0, 0, 0, 0, 0}, 3))
	f.Add(b.bytes())
	b.mapped(fileNote{arch.Span{Lo: 0x1000, Hi: 0x2000}, 0, "/bin/x"}, fileNote{arch.Span{Lo: 0x2000, Hi: 0x3000}, 0x1000, "/bin/x"})
	f.Add(b.bytes())
	lib := elfFile(f, nil)
	b.loads = append(b.loads, buildLoad{addr: 0x100000, data: lib[:min(len(lib), 1<<16)]})
	b.mapped(fileNote{arch.Span{Lo: 0x100000, Hi: 0x101000}, 0, "/lib/l.so"})
	f.Add(b.bytes())
	b.note(seamNote, keptImageRec, fill(200, 0))
	f.Add(b.bytes())
	// A real one: createdump's notes, and those of a trim.
	z, err := os.ReadFile("testdata/hello.core.zst")
	if err != nil {
		f.Fatal(err)
	}
	dec, _ := zstd.NewReader(nil)
	raw, err := dec.DecodeAll(z, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[:min(len(raw), 64<<10)])
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := openBytes("fuzz", data, Options{Track: true, Limits: Limits{}.withDefaults()})
		if err != nil {
			return
		}
		for _, m := range p.Images {
			for _, n := range []string{".eh_frame_hdr", ".eh_frame", ".plt", ".pdata"} {
				if s, ok := m.Table(n); ok && (s.Lo < m.span.Lo || s.Hi > m.span.Hi || s.Lo >= s.Hi) {
					t.Errorf("%s lies at %v, the image at %v", n, s, m.span)
				}
			}
			m.Lookup("main")
			m.Section(".symtab")
			m.FileView(m.span.Lo, 8)
			m.Bytes()
			p.Memory.Absent(m.span.Lo)
		}
		last := arch.Addr(0)
		for _, s := range p.Memory.segs {
			if s.lo < last || len(s.data) == 0 {
				t.Fatalf("segment at %v after %v", s.lo, last)
			}
			last = s.hi()
			p.Memory.View(s.lo, len(s.data)+1)
			p.Memory.Word(s.hi() - 3)
		}
		if _, err := p.WriteTrimmed(io.Discard, Kept{}); err != nil {
			t.Error(err)
		}
	})
}
