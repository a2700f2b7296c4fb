package stacks_test

import (
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/managed/stacks"
)

// A printed is a frame of a stack trace that the runtime printed: the last part of
// its method's name, and the line of source, 0 where none was printed.
type printed struct {
	method string
	file   string
	line   int
}

// A mark is the stack trace that a thread printed of itself right before it parked.
type mark struct {
	name   string // of what the thread does
	tid    uint32
	frames []printed
}

var (
	printedFrame = regexp.MustCompile(`(?m)^ *at (.+?)\((.*?)\)(?: in (.*):line (\d+))?\r?$`)
	innermost    = regexp.MustCompile(`<(\w+)>`)
)

// marks returns the stack traces of a recording, without the two frames of the
// printing itself.
func marks(t *testing.T, dir string) (list []mark) {
	for _, line := range recordedLines(t, dir, "record.jsonl.zst") {
		var r struct {
			Ev, Name, Text string
			TID            uint32 `json:"os_tid"`
		}
		if !strings.HasPrefix(line, `{"ev":"mark"`) {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		m := mark{name: r.Name, tid: r.TID}
		for _, f := range printedFrame.FindAllStringSubmatch(r.Text, -1)[2:] {
			// What a compiler has made is found by the method around it.
			name := strings.TrimRight(f[1][strings.LastIndexByte(f[1], '.')+1:], "`0123456789")
			if in := innermost.FindAllStringSubmatch(f[1], -1); in != nil {
				name = in[len(in)-1][1]
			}
			name, _, _ = strings.Cut(name, "[")
			n, _ := strconv.Atoi(f[4])
			m.frames = append(m.frames, printed{name, path.Base(f[3]), n})
		}
		list = append(list, m)
	}
	if len(list) < 5 {
		t.Fatalf("%d recorded stack traces", len(list))
	}
	return list
}

// is reports whether f is code of the method of p.
func (p *printed) is(f *stacks.Frame) bool {
	return f.Kind == stacks.Managed && f.Method != nil && (strings.Contains(f.Function, p.method) || strings.Contains(f.Method.Name, p.method))
}

// described returns the stacks of a recorded dump.
func described(t *testing.T, s *stacks.Stacks) map[uint32]*stacks.Thread {
	all := map[uint32]*stacks.Thread{}
	for th, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		all[th.TID] = th.Clone()
	}
	return all
}

// TestRecordedLines: where the process has printed a stack trace of a thread with
// lines, the frames of the thread's stack have the same lines, in order.
func TestRecordedLines(t *testing.T) {
	for dump, want := range map[string]int{
		"net10-scenarios-x64/normal": 5368,
		"net10-hello-x64/normal":     19,
		"net10-r2r-x64/normal":       5284,
		"net10-composite-x64/normal": 5284,
		"net10-singlefile-x64/gcore": 5363,
		"net9-scenarios-x64/normal":  5368,
		"net8-scenarios-x64/normal":  5363,
	} {
		t.Run(dump, func(t *testing.T) {
			dir, file := path.Split(dump)
			all, n := described(t, openCase(t, dir, file+".zst")), 0
			for _, m := range marks(t, dir) {
				frames := all[m.tid].Frames
			next:
				for _, p := range m.frames {
					if p.line == 0 {
						continue
					}
					for i := range frames {
						if f := &frames[i]; p.is(f) && f.Line == p.line && path.Base(f.File) == p.file {
							frames = frames[i+1:]
							n++
							continue next
						}
					}
					t.Errorf("thread %d, %s: no frame of %s at line %d behind those before", m.tid, m.name, p.method, p.line)
				}
			}
			if n != want {
				t.Errorf("%d frames have the printed line, want %d", n, want)
			}
		})
	}
}

// TestLinesOnBoth: ARM64 processes have printed no lines. Their program is that of
// the x86-64 ones, with some lines between its methods. So frames of the same
// method in the same situation stand at the same line of the method.
func TestLinesOnBoth(t *testing.T) {
	for dir, like := range map[string]string{
		"net10-hello-arm64": "net10-scenarios-x64", "net10-scenarios-arm64": "net10-scenarios-x64", "net10-r2r-arm64": "net10-r2r-x64",
	} {
		truth := map[string][]printed{}
		for _, m := range marks(t, like) {
			truth[m.name] = m.frames
		}
		all, n := described(t, openCase(t, dir, "dump.zst")), 0
		shift := map[string]int{}
		for _, m := range marks(t, dir) {
			frames := all[m.tid].Frames
			for _, p := range truth[m.name] {
				if p.line == 0 {
					continue
				}
				for i := range frames {
					f := &frames[i]
					if !p.is(f) || f.Line == 0 {
						continue
					}
					frames = frames[i+1:]
					key := f.Method.Name
					if _, seen := shift[key]; !seen {
						shift[key] = f.Line - p.line
					}
					if f.Line-p.line != shift[key] {
						t.Errorf("%s, %s: %s at line %d, %d on x86-64, which is %d apart elsewhere", dir, m.name, key, f.Line, p.line, shift[key])
					}
					n++
					break
				}
			}
		}
		if n < 12 || len(shift) < 8 {
			t.Errorf("%s: %d frames of %d methods compared", dir, n, len(shift))
		}
	}
}
