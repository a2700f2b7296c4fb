package stacks

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/google/go-cmp/cmp"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

const aotCase = "net9-nativeaot-x64"

// unpack returns the bytes of a packed file of the corpus.
func unpack(t *testing.T, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(corpus.Path(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if b, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return b
}

// openAOT opens the recorded dump of a program compiled ahead of time, with the
// program's file, and with its debug file if symbols are asked for.
func openAOT(t *testing.T, symbols bool) *Stacks {
	t.Helper()
	find := []loader.Finder{loader.DirFinder(corpus.Images(t))}
	if symbols {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "aotapp.dbg"), unpack(t, aotCase, "aotapp.dbg.zst"), 0o600); err != nil {
			t.Fatal(err)
		}
		find = append(find, loader.DirFinder(dir))
	}
	p, err := loader.Open(corpus.Path(t, aotCase, "gcore.zst"), &loader.Options{Find: loader.MultiFinder(find...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return Of(managed.Open(p, nil), nil)
}

// A called is a frame as gdb prints it: its pc, and the function's name.
type called struct {
	PC   uint64
	Name string
}

// gdbFrames returns, by thread, the frames that gdb has in [lo, hi).
func gdbFrames(t *testing.T, lo, hi uint64) map[uint32][]called {
	head := regexp.MustCompile(`^Thread .*\(LWP (\d+)\)`)
	frame := regexp.MustCompile(`^#\d+ +0x([0-9a-f]+) in (.*?) \(`)
	out, tid := map[uint32][]called{}, uint32(0)
	lines := bufio.NewScanner(bytes.NewReader(unpack(t, aotCase, "gdb-bt.txt.zst")))
	for lines.Scan() {
		if m := head.FindStringSubmatch(lines.Text()); m != nil {
			n, _ := strconv.ParseUint(m[1], 10, 32)
			tid = uint32(n)
			out[tid] = nil
		}
		if m := frame.FindStringSubmatch(lines.Text()); m != nil {
			if pc, _ := strconv.ParseUint(m[1], 16, 64); pc >= lo && pc < hi {
				out[tid] = append(out[tid], called{pc, m[2]})
			}
		}
	}
	return out
}

// faultThread is the recorded thread that stands in the handler of a hardware
// fault in Program.Deref.
const faultThread = 11552

// Every thread of a program that NativeAOT compiled reaches its root, with the pcs
// and names in the program that gdb has. Of the thread with a fault gdb has garbage
// where the fault was: what the program did there is in its source.
func TestNativeAOT(t *testing.T) {
	s := openAOT(t, true)
	var span [2]uint64
	for _, img := range s.Session().Process.Images {
		if img.ID.Name == "aotapp" {
			span = [2]uint64{uint64(img.Span().Lo), uint64(img.Span().Hi)}
		}
	}
	want := gdbFrames(t, span[0], span[1])
	if len(want) != 12 {
		t.Fatalf("gdb has %d threads", len(want))
	}
	deref := called{span[0] + 0xce520, "aotapp_Program__Deref"}
	at := 7 // behind RhpThrowHwEx
	want[faultThread] = append(append(append([]called{}, want[faultThread][:at]...), deref), want[faultThread][at:]...)
	for th, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		var got []called
		for _, f := range th.Frames {
			if f.Kind == Gap {
				t.Errorf("thread %d has a gap: %+v", th.TID, f.Why)
			}
			if f.Module == "aotapp" {
				got = append(got, called{uint64(f.PC.Addr), f.Function})
				if exact := f.PC.Exact; exact != (len(got) == 1 && th.TID == 11555 || got[len(got)-1] == deref) {
					t.Errorf("thread %d, %v: exact is %v", th.TID, f.PC.Addr, exact)
				}
			}
		}
		if !th.Stop.Complete {
			t.Errorf("thread %d ends with %s", th.TID, th.Stop.Reason)
		}
		if d := cmp.Diff(want[th.TID], got); d != "" {
			t.Errorf("thread %d, gdb's frames and ours:\n%s", th.TID, d)
		}
		delete(want, th.TID)
	}
	if len(want) > 0 {
		t.Errorf("threads without a stack: %v", want)
	}
}

// Its threads and exceptions are those that its source makes, with symbols and
// without.
func TestNativeAOTThreads(t *testing.T) {
	const invalid, null = "System.InvalidOperationException", "System.NullReferenceException"
	want := map[uint32]*Exception{
		11549: {Type: invalid, Message: "aot", HasMessage: true, HResult: 0x80131509},
		11550: {Type: invalid, Message: "aot", HasMessage: true, HResult: 0x80131509},
		11551: {Type: invalid, Message: "aot", HasMessage: true, HResult: 0x80131509},
		faultThread: {Type: null, HasMessage: true, HResult: 0x80004003,
			Message: "Object reference not set to an instance of an object."},
	}
	const throw, lambda = "aotapp_Program__Throwfalse", "aotapp_Program___c___Main_b__15_"
	traces := map[uint32][]string{
		11549:       {throw, throw, throw, throw, lambda + "2false"},
		11550:       {throw, throw, throw, "aotapp_Program__Finallyfalse", lambda + "3false"},
		11551:       {throw, throw, throw, lambda + "4false"},
		faultThread: {"aotapp_Program__Dereftrue", lambda + "5false"},
	}
	for _, symbols := range []bool{true, false} {
		s := openAOT(t, symbols)
		if d := s.Dump(); len(d.Runtimes) != 1 || d.Runtimes[0].Kind != "nativeaot" || d.Runtimes[0].Image != "aotapp" {
			t.Fatalf("its runtimes: %+v", d.Runtimes)
		}
		for _, th := range s.Threads() {
			got := s.Thread(th)
			// .NET SigHandler is a thread of libSystem.Native's own.
			if mode := map[uint32]Mode{11547: Unmanaged, 11555: Cooperative}[th.ID]; mode != "" && got.Mode != mode || mode == "" && got.Mode != Preemptive && th.ID != 11547 {
				t.Errorf("thread %d is %q", th.ID, got.Mode)
			}
			e := want[th.ID]
			if (e == nil) != (got.Exception == nil) {
				t.Errorf("thread %d has the exception %+v", th.ID, got.Exception)
			}
			if e == nil || got.Exception == nil {
				continue
			}
			if typ := got.Exception.Type; typ != e.Type || got.Exception.Message != e.Message || !got.Exception.HasMessage ||
				!got.Exception.HasHResult || got.Exception.HResult != e.HResult || got.Exception.Inner != nil {
				t.Errorf("thread %d has the exception %+v", th.ID, got.Exception)
			}
			var frames []string
			for _, f := range got.Exception.Frames {
				frames = append(frames, fmt.Sprint(f.Function, f.PC.Exact))
			}
			if d := cmp.Diff(traces[th.ID], frames); d != "" && symbols {
				t.Errorf("thread %d, what it was thrown through:\n%s", th.ID, d)
			}
		}
	}
}
