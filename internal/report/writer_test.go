package report

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

var errFull = errors.New("no space left")

// A full is a writer that takes a number of bytes.
type full struct{ left int }

func (w *full) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return w.left, errFull
	}
	w.left -= len(b)
	return len(b), nil
}

// A writer that fails, at once or later, is the error that every form returns.
func TestWriterFails(t *testing.T) {
	h, threads, tail := sample()
	many := *threads[0]
	many.Frames = slices.Repeat(many.Frames, 2000) // more than is gathered
	methods := &MethodTable{Head: h, Tail: tail, List: make([]stacks.Compiled, 5000)}
	results := map[string]Result{"info": &Info{Head: h, Threads: []stacks.Thread{many}, Tail: tail}, "seeds": &Seeds{Head: h, Tail: tail},
		"views": views(), "methods": methods}
	for room := range 2 {
		for name, r := range results {
			for _, f := range r.forms() {
				if err := Write(&full{left: room}, f.name, Style{}, r); !errors.Is(err, errFull) {
					t.Errorf("%s as %s into a writer of %d bytes: %v", name, f.name, room, err)
				}
			}
		}
		for _, format := range Formats() {
			o, err := New(&full{left: room * 2000}, format, Style{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(o.Begin(h), o.Thread(&many), o.End(tail)); !errors.Is(err, errFull) {
				t.Errorf("stacks as %s: %v", format, err)
			}
		}
		for _, format := range []string{"text", "jsonl"} {
			o, err := NewSnapshots(&full{left: room * 100}, format, Style{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(o.Begin(h), o.Call(&Snapshot{HR: profiler.S_OK}), o.End(tail)); !errors.Is(err, errFull) {
				t.Errorf("snapshots as %s: %v", format, err)
			}
		}
	}
	// An unknown form is found before anything is written.
	if err := Write(&full{}, "xml", Style{}, methods); err == nil || errors.Is(err, errFull) {
		t.Errorf("as xml: %v", err)
	}
	if _, err := NewSnapshots(io.Discard, "json", Style{}); err == nil {
		t.Error("snapshots are written as json")
	}
}
