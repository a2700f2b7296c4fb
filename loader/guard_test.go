package loader

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
)

// pages makes a core of n pages at 0x10000, each word of which is its address,
// and returns its path.
func pages(t testing.TB, n int) string {
	t.Helper()
	data := make([]byte, n*pageSize)
	for i := 0; i < len(data); i += 8 {
		data[i], data[i+1], data[i+2] = byte(i), byte(i>>8), byte((0x10000+i)>>16)
	}
	// As many bytes in front as make the pages pages of the file.
	b := buildCore{loads: []buildLoad{{addr: 0x10000, data: data}}}
	b.thread(1, 0, 0)
	raw := b.bytes()
	b.note("PAD", 1, make([]byte, pageSize-(len(raw)-len(data)+16)%pageSize))
	raw = b.bytes()
	if (len(raw)-len(data))%pageSize != 0 {
		t.Fatalf("%d bytes in front", len(raw)-len(data))
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cut truncates a file to all but its last n bytes.
func cut(t testing.TB, path string, n int) {
	t.Helper()
	st, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, st.Size()-int64(n))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mapped is whether this program maps files at all.
const mapped = runtime.GOOS != "windows"

// mappedPages opens a core of eight pages, whose file is mapped.
func mappedPages(t *testing.T) (path string, p *Process) {
	if !mapped {
		t.Skip("files are not mapped here")
	}
	path = pages(t, 8)
	p, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return path, p
}

// What a dump loses while it is open is missing from then on, and the rest is
// as it was.
func TestCutWhileOpen(t *testing.T) {
	path, p := mappedPages(t)
	const last = 0x10000 + 7*pageSize
	if v, ok := p.Memory.Word(last); !ok || v != last { // its segment is found last
		t.Fatalf("%#x %v", v, ok)
	}
	view := p.Memory.View(last, 8)
	cut(t, path, 3*pageSize)

	n, after := 0, false
	err := p.Guard(func() { n++; p.Memory.Word(last); after = true })
	var lost *LostError
	if !errors.As(err, &lost) || !lost.Again || lost.Path != path || n != 1 || after {
		t.Fatalf("the first read: %v, after %d", err, n)
	}
	if st, _ := os.Stat(path); lost.Off != st.Size() {
		t.Errorf("lost from %#x on, of %#x", lost.Off, st.Size())
	}
	// No guard is needed for what is known to be lost.
	for i := range 8 {
		for _, off := range []int{0, 8, pageSize - 8, pageSize - 4} {
			at := arch.Addr(0x10000 + i*pageSize + off)
			_, ok := p.Memory.Word(at)
			b := p.Memory.View(at, 8)
			if want := i < 5 && (i < 4 || off != pageSize-4); ok != want || (b != nil) != want {
				t.Errorf("Word(%v): %v, View % x; want %v", at, ok, b, want)
			}
		}
	}
	if a, _ := p.Memory.Absent(last); a != NotDumped {
		t.Errorf("Absent says %v", a)
	}
	if !warned(p, "file_lost") {
		t.Errorf("warnings: %v", p.Problems())
	}
	// A slice that was taken before leads to the fault again, and never to zeros.
	err = p.GuardRetry(func() { n += int(view[0]); t.Error("a lost byte was read") })
	if !errors.As(err, &lost) || lost.Again {
		t.Errorf("a slice that was taken before: %v", err)
	}
	n = 0
	if err := p.GuardRetry(func() { n++; p.Memory.Word(0x10000) }); err != nil || n != 1 {
		t.Errorf("what is left: %v, %d times", err, n)
	}
}

// A page that comes to be missing is asked for again without it.
func TestGuardRetry(t *testing.T) {
	path, p := mappedPages(t)
	n, oks := 0, 0
	cut(t, path, 2*pageSize)
	if err := p.GuardRetry(func() {
		oks = 0
		for i := range 8 {
			if n++; i == 5 && n < 10 {
				cut(t, path, 4*pageSize)
			}
			if _, ok := p.Memory.Word(arch.Addr(0x10000 + i*pageSize)); ok {
				oks++
			}
		}
	}); err != nil || oks != 2 {
		t.Errorf("%v: %d words of 2, in %d tries", err, oks, n)
	}
}

// An image file that is cut is one that ends there, and a debug file too.
func TestImageCutWhileOpen(t *testing.T) {
	if !mapped {
		t.Skip("files are not mapped here")
	}
	lib := append(elfFile(t, nil), make([]byte, pageSize)...)
	dir := t.TempDir()
	path := filepath.Join(dir, "l.so")
	if err := os.WriteFile(path, lib, 0o600); err != nil {
		t.Fatal(err)
	}
	p := mapLibrary(t, lib, true).open(t, &Options{Find: DirFinder(dir)})
	m := p.Images[0]
	if _, why, _ := m.File(); why != Present {
		t.Fatal(why)
	}
	at, _, ok := m.Lookup("exported")
	if !ok {
		t.Fatal("no exported")
	}
	if err := os.Truncate(path, pageSize); err != nil {
		t.Fatal(err)
	}
	if err := p.GuardRetry(func() {
		if b := p.Memory.View(at, 4); b != nil {
			touch(&b[0])
		}
		if p.Memory.View(at, 4) != nil || m.Section(".symtab") != nil || m.FileView(at, 4) != nil {
			t.Error("bytes of the lost part")
		}
	}); err != nil {
		t.Error(err)
	}
	if why, _ := p.Memory.Absent(at); why != ImageCut {
		t.Errorf("Absent says %v", why)
	}
	if p.Memory.View(libBase, 4) == nil {
		t.Error("what is left of the file is missing")
	}
}

// Close takes nothing away from who reads, and leaves nothing behind.
func TestCloseInUse(t *testing.T) {
	path := pages(t, 4)
	p, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	view := p.Memory.View(0x10000, 16)
	if err := p.Guard(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if v, ok := p.Memory.Word(0x10008); ok || p.Memory.View(0x10000, 8) != nil {
			t.Errorf("a closed process has %#x", v)
		}
		if view[1] != 0 || view[2] != 1 || view[8] != 8 {
			t.Errorf("the slice has % x", view)
		}
		if err := p.Guard(func() { t.Error("called") }); !errors.Is(err, ErrClosed) {
			t.Errorf("a guard in a closed process: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Memory.Word(0x10000); ok {
		t.Error("a closed process has memory")
	}
	if _, err := os.Stat("/proc/self/maps"); err == nil && strings.Contains(selfMaps(t), path) {
		t.Error("the file is still mapped")
	}
	if err := p.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func selfMaps(t testing.TB) string {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return string(b)
}

// Words that are read without a guard while the process is closed are right or
// missing.
func TestCloseWhileRead(t *testing.T) {
	path := pages(t, 64)
	for range 200 {
		p, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for at := arch.Addr(0x10000); ; at = 0x10000 + (at+0x1238)%(64*pageSize) {
					at &^= 7
					v, ok := p.Memory.Word(at)
					if !ok {
						return
					}
					if v&0xffffff != uint64(at)&0xffff|uint64(at)&0xff0000 {
						t.Errorf("Word(%v) = %#x", at, v)
						return
					}
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		p.Close()
		all.Wait()
	}
}

// A dump that is read into memory survives all that, and so do its slices.
func TestInMemory(t *testing.T) {
	path := pages(t, 8)
	p, err := Open(path, &Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/maps"); err == nil && strings.Contains(selfMaps(t), path) {
		t.Error("the file is mapped")
	}
	view := p.Memory.View(0x10000+7*pageSize, 16)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if v, ok := p.Memory.Word(0x10000 + 7*pageSize); !ok || v != 0x17000 {
		t.Errorf("%#x %v", v, ok)
	}
	p.Close()
	if _, ok := p.Memory.Word(0x10000); ok || view[1] != 0x70 {
		t.Errorf("after Close: %v, % x", ok, view)
	}

	path = pages(t, 8)
	if _, err := Open(path, &Options{InMemory: true, Limits: Limits{InMemory: 8 * pageSize}}); err == nil || !strings.Contains(err.Error(), "more than 32768 bytes") {
		t.Errorf("a limit: %v", err)
	}
	lib := elfFile(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "l.so"), lib, 0o600); err != nil {
		t.Fatal(err)
	}
	q := mapLibrary(t, lib, true).open(t, &Options{InMemory: true, Find: DirFinder(dir)})
	if err := os.Truncate(filepath.Join(dir, "l.so"), 0); err != nil {
		t.Fatal(err)
	}
	if q.Images[0].Section(".symtab") != nil {
		t.Error("an empty file has symbols")
	}
	if err := os.WriteFile(filepath.Join(dir, "l.so"), lib, 0o600); err != nil {
		t.Fatal(err)
	}
	q = mapLibrary(t, lib, true).open(t, &Options{InMemory: true, Find: DirFinder(dir)})
	if q.Images[0].Section(".symtab") == nil || strings.Contains(selfMaps(t), dir) {
		t.Error("an image file in memory")
	}
}

// A dump that is cut while it is opened is a cut dump.
func TestCutWhileOpening(t *testing.T) {
	if !mapped {
		t.Skip("files are not mapped here")
	}
	path := pages(t, 4)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The headers that are read last are lost, when the first are read.
	f := formats[0]
	defer func() { formats[0] = f }()
	formats[0].is = func(head []byte) bool {
		if len(head) == len(whole) {
			if err := os.Truncate(path, pageSize); err != nil {
				t.Error(err)
			}
			touch(&head[len(head)-1])
		}
		return f.is(head)
	}
	p, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Threads) != 1 || !warned(p, "core_cut") {
		t.Errorf("%d threads, %v", len(p.Threads), p.Problems())
	}
}

// Faults that have nothing to do with the process end the program as ever, and
// other panics pass through.
func TestForeignFault(t *testing.T) {
	if !mapped {
		t.Skip("files are not mapped here")
	}
	p, err := Open(pages(t, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if os.Getenv("SEAM_FAULT") != "" {
		path := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(path, make([]byte, pageSize), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := mapFile(f, pageSize)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		defer func() { t.Logf("recovered %v", recover()) }()
		p.Guard(func() { touch(&data[0]) })
		return
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		p.Guard(func() { panic("mine") })
	}()
	func() {
		defer func() {
			if _, ok := recover().(runtime.Error); !ok {
				t.Error("a nil pointer is no runtime error")
			}
		}()
		p.Guard(func() { touch(nil) })
	}()
	if p.held.users != 0 {
		t.Errorf("%d users are left", p.held.users)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestForeignFault$", "-test.v")
	c.Env = append(os.Environ(), "SEAM_FAULT=1")
	out, err := c.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("unexpected fault address")) || bytes.Contains(out, []byte("recovered <nil>")) || !bytes.Contains(out, []byte("TestForeignFault")) {
		t.Errorf("%v: %s", err, out)
	}
}
