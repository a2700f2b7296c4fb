package profiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/stacks"
)

// A packedFinder finds the images of the recorded cases, which are packed.
type packedFinder struct{ from, to string }

func (f packedFinder) Find(id loader.ImageID, path string) []string {
	packed, err := os.ReadFile(filepath.Join(f.from, "images", "elf", id.BuildID, id.Name+".zst"))
	if err != nil {
		return nil
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil
	}
	defer z.Close()
	b, err := z.DecodeAll(packed, nil)
	out := filepath.Join(f.to, id.BuildID+"-"+id.Name)
	if err != nil || os.WriteFile(out, b, 0o600) != nil {
		return nil
	}
	return []string{out}
}

// openHung opens a case with or without the files of its images.
func openHung(t *testing.T, name string, files bool) *managed.Session {
	t.Helper()
	dir := corpus.Path(t)
	opt := &loader.Options{}
	if files {
		opt.Find = packedFinder{dir, t.TempDir()}
	}
	p, err := loader.Open(filepath.Join(dir, "net10-hung-x64", name, "dump.zst"), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return managed.Open(p, nil)
}

// brokenIn returns the guidelines that the process of s breaks.
func brokenIn(t *testing.T, s *managed.Session) []Hazard {
	t.Helper()
	hs, err := Hazards(stacks.Of(s, nil))
	if err != nil {
		t.Fatal(err)
	}
	return hs
}

// TestHazardsHung diagnoses three processes whose profiler broke a guideline,
// as a debugger told of them while they hung.
func TestHazardsHung(t *testing.T) {
	for _, c := range []struct{ name, rule string }{
		{"malloc", "no lock"}, {"loader", "no lock"}, {"gc", "must not run managed code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join("net10-hung-x64", c.name)
			var truth struct {
				Walker, Target uint32
				Holder         uint32
				Lock           string
				LockAddress    string   `json:"lock_address"`
				OnWord         []uint32 `json:"threads_on_walker_wait_word"`
				Waits          [][3]any
				Suspender      uint32
			}
			b, err := os.ReadFile(filepath.Join(corpus.Path(t), dir, "truth.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &truth); err != nil {
				t.Fatal(err)
			}
			for _, files := range []bool{true, false} {
				s := openHung(t, c.name, files)
				hs := brokenIn(t, s)
				if len(hs) != 1 {
					t.Fatalf("%d hazards: %+v", len(hs), hs)
				}
				h := hs[0]
				if h.Walker != truth.Walker || h.Target != truth.Target || h.Holder != truth.Holder {
					t.Errorf("%+v\nwant %+v", h, truth)
				}
				// Without files nothing of libc has a name.
				if h.Lock != truth.Lock && (files || h.Lock != "unknown, of libc.so.6") {
					t.Errorf("lock %q, want %q", h.Lock, truth.Lock)
				}
				if !strings.Contains(h.Rule, c.rule) || h.WayOut == "" || len(h.Frames) == 0 {
					t.Errorf("%q, %q, %d frames", h.Rule, h.WayOut, len(h.Frames))
				}
				if at := uint64(h.LockAt); at != hexNumber(truth.LockAddress) {
					t.Errorf("lock at %#x, want %s", at, truth.LockAddress)
				}
				var got, want []string
				for _, w := range h.Waits {
					got = append(got, fmt.Sprint(w.Who, " ", w.Whom))
				}
				for _, w := range truth.Waits {
					want = append(want, fmt.Sprint(w[0], " ", w[1]))
				}
				if !slices.Equal(got, want) {
					t.Errorf("waits %q, want %q", got, want)
				}
				on := append([]uint32{h.Walker}, h.Victims...)
				slices.Sort(on)
				if !slices.Equal(on, truth.OnWord) {
					t.Errorf("%v wait for the word, want %v", on, truth.OnWord)
				}
			}
		})
	}
}

// TestHazardsNone finds nothing in processes that are well.
func TestHazardsNone(t *testing.T) {
	for _, c := range []string{"net10-scenarios-x64/normal.zst", "net10-busy-x64/a/dump.zst", "net10-busy-x64/b/dump.zst", "net10-busy-x64/c/dump.zst", "deep-dotnet-x64/dump.zst", "net10-callbacks-x64/dump.zst"} {
		s := openCase(t, filepath.Dir(c), filepath.Base(c))
		if hs := brokenIn(t, s); len(hs) > 0 {
			t.Errorf("%s: %+v", c, hs)
		}
	}
}

// TestHazardsDead marks the stopped thread as ended, which no recorded process has.
func TestHazardsDead(t *testing.T) {
	dir := filepath.Join("net10-hung-x64", "malloc")
	s := openHung(t, "malloc", false)
	target := brokenIn(t, s)[0].Target
	m, _ := s.Thread(target)
	v, _ := s.Process.Memory.Word(m.Addr)
	s = openEdited(t, dir, "dump.zst", edit{m.Addr, v | 0x800})
	hs := brokenIn(t, s)
	if len(hs) != 1 || !strings.Contains(hs[0].Rule, "alive") || hs[0].Target != target {
		t.Errorf("%+v", hs)
	}
}

// TestHazardRules gives the rules that no recorded process breaks stacks that do.
func TestHazardRules(t *testing.T) {
	libc, profiler, runtime := new(loader.Image), new(loader.Image), new(loader.Image)
	type frame struct {
		img  *loader.Image // nil: managed
		name string
	}
	stack := func(tid uint32, th *code.Thread, waiting bool, handler int, fs ...frame) stoppedStack {
		st := stoppedStack{tid: tid, thread: th, waiting: waiting, handler: handler, at: handler + 2}
		for _, f := range fs {
			place := &stacks.Place{Kind: stacks.Native, Function: f.name}
			if f.img == nil {
				place = &stacks.Place{Kind: stacks.Managed, Method: &stacks.Method{Name: f.name}}
			}
			st.frames = append(st.frames, stacks.Frame{Place: place})
			st.images = append(st.images, f.img)
		}
		if handler >= 0 {
			st.library = profiler
		}
		return st
	}
	target := func(th *code.Thread, in ...frame) stoppedStack {
		return stack(2, th, true, 1, append([]frame{{libc, "sem_wait"}, {profiler, "on_sample"}, {libc, "__restore_rt"}}, in...)...)
	}
	coop, pre := &code.Thread{Cooperative: true}, &code.Thread{}
	for _, c := range []struct {
		name           string
		walker, target stoppedStack
		want           string // in the rule; "": none is broken
	}{
		{"SuspendRuntime", stack(1, nil, true, -1, frame{libc, "nanosleep"}, frame{runtime, ""}, frame{profiler, "walk"}), target(coop, frame{nil, "Work"}), "make the runtime wait"},
		{"first call", stack(1, nil, true, -1, frame{libc, "pthread_mutex_lock"}, frame{runtime, ""}, frame{profiler, "walk"}), target(pre, frame{runtime, ""}), "have called the runtime once"},
		{"lock of the runtime", stack(1, pre, true, -1, frame{libc, "pthread_mutex_lock"}, frame{runtime, ""}, frame{profiler, "walk"}), target(pre, frame{runtime, ""}), "no lock"},
		{"allocates, and is not stuck yet", stack(1, nil, false, -1, frame{libc, "malloc"}, frame{profiler, "walk"}), target(pre, frame{libc, "_int_free"}, frame{libc, "free"}), "no lock"},
		{"a managed sampler", stack(1, pre, true, -1, frame{libc, "nanosleep"}, frame{profiler, "sample"}, frame{nil, "Sampler.Run"}), target(pre, frame{nil, "Work"}), "must not run managed code"},
		{"at its end", stack(1, nil, false, -1, frame{profiler, "walk"}), target(nil, frame{libc, "__call_tls_dtors"}, frame{libc, "start_thread"}), "alive"},
		{"other locks", stack(1, nil, true, -1, frame{libc, "malloc"}, frame{profiler, "walk"}), target(pre, frame{libc, "dl_iterate_phdr"}), ""},
		{"the target allocated before managed code", stack(1, nil, true, -1, frame{libc, "malloc"}, frame{profiler, "walk"}), target(pre, frame{nil, "Work"}, frame{libc, "malloc"}), ""},
		{"a walk as it should be", stack(1, nil, false, -1, frame{profiler, "walk"}), target(coop, frame{nil, "Work"}), ""},
		{"not the walker", stack(1, nil, true, -1, frame{libc, "malloc"}, frame{libc, "start_thread"}), target(pre, frame{libc, "malloc"}), ""},
	} {
		j := judge{stacks: []stoppedStack{c.walker, c.target}, runtime: runtime, mem: new(loader.Memory)}
		hs := j.hazards()
		switch {
		case c.want == "" && len(hs) > 0:
			t.Errorf("%s: %+v", c.name, hs)
		case c.want != "" && (len(hs) != 1 || !strings.Contains(hs[0].Rule, c.want) || hs[0].Walker != 1 || hs[0].Target != 2):
			t.Errorf("%s: %+v", c.name, hs)
		}
	}
}

// TestHazardsNothingToLookAt asks for the guidelines that nothing breaks, and a
// process without a CoreCLR.
func TestHazardsNothingToLookAt(t *testing.T) {
	if hs, err := Hazards(nil); hs != nil || err == nil {
		t.Errorf("no stacks: %v, %v", hs, err)
	}
	s := openFixture(t, "net10-hello")
	s.Runtimes = nil
	if hs, err := Hazards(stacks.Of(s, nil)); hs != nil || !errors.Is(err, ErrNoRuntime) {
		t.Errorf("no runtime: %v, %v", hs, err)
	}
}
