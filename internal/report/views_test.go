package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/seamwalk/seam/internal/golden"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

// views is a thread with a method's callback, and one for a run of two frames.
func views() *Views {
	h, threads, tail := sample()
	frames := threads[0].Frames
	th := *threads[0]
	th.Frames = nil
	return &Views{Head: h, Tail: tail, List: []View{
		{Thread: th, Callbacks: []Callback{{Frame: frames[2]}, {Frame: frames[1], Run: frames[0:2]}}, Omitted: 3, HR: profiler.S_OK},
		{Thread: stacks.Thread{TID: 7}, HR: profiler.E_FAIL, Why: "the walk found no managed frame"},
	}}
}

func TestViews(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		if err := Write(&out, format, Style{}, views()); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "views."+format, out.Bytes())
	}
}

// Callbacks, and the frames of their runs, have all fields that the frames of
// stacks have (docs/json.md), named as those are.
func TestViewFields(t *testing.T) {
	var stack, view struct {
		Threads []struct{ Frames []map[string]any }
	}
	var out bytes.Buffer
	if err := Write(&out, "json", Style{}, views()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &view); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(render(t, "json", Style{}), &stack); err != nil {
		t.Fatal(err)
	}
	frames := view.Threads[0].Frames
	run, _ := frames[1]["frames"].([]any)
	if len(run) != 2 {
		t.Fatalf("the run is %v", frames[1]["frames"])
	}
	for k := range stack.Threads[0].Frames[2] {
		for _, f := range []map[string]any{frames[0], frames[1], run[1].(map[string]any)} {
			if _, ok := f[k]; !ok {
				t.Errorf("%v has no %q", f, k)
			}
		}
	}
	if frames[0]["kind"] != "managed" || frames[1]["kind"] != "run" || frames[1]["function"] != "pthread_cond_wait" {
		t.Errorf("the callbacks are %v", frames)
	}
}
