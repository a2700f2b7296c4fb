package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/golden"
	"github.com/seamwalk/seam/managed/stacks"
)

// thrown is a thread with an exception that stands for two others, one of which has
// an inner one. The stack trace of the first lies on the stack.
func thrown() *stacks.Thread {
	frame := func(n arch.Addr, name string) stacks.Frame {
		return stacks.Frame{PC: arch.PC{Addr: 0x1000 * n}, SP: 0x7ffd0000 + 0x10*n, Place: &stacks.Place{Kind: stacks.Managed, Module: "app.dll", Function: name, Offset: 3,
			Method: &stacks.Method{ID: 0x8000 + n, ILOffset: -1, FuncletKnown: true, Code: "jit"}}}
	}
	cause := &stacks.Exception{Type: "System.IO.IOException", Message: "disk full", HasMessage: true, Address: 0x9100, HResult: 0x80131620, HasHResult: true,
		Frames: []stacks.Frame{frame(7, "App.Disk.Write()"), frame(8, "App.Disk.Flush()"), frame(9, "App.Log.Close()")}, Rethrown: []int{1}}
	first := &stacks.Exception{Type: "App.SaveException", Address: 0x9200, Inner: cause}
	second := &stacks.Exception{Address: 0x9300, Lacks: []string{"inner", "frames"}}
	e := &stacks.Exception{Type: "System.AggregateException", Message: "One or more errors occurred.", HasMessage: true, Address: 0x9000, HResult: 0x80131500, HasHResult: true,
		Inner: first, All: []*stacks.Exception{first, second}, Frames: []stacks.Frame{frame(1, "App.Program.Save()"), frame(2, "App.Program.Main(string[])")}}
	return &stacks.Thread{TID: 1, Mode: stacks.Cooperative, ManagedID: 1, Exception: e,
		Frames: append([]stacks.Frame{frame(5, "App.Program.Handler()")}, e.Frames...), Stop: stacks.Stop{Reason: "end_of_stack", Complete: true, Text: "end"}}
}

func TestException(t *testing.T) {
	var text, forMachines bytes.Buffer
	newText(&text, Style{}).Thread(thrown())
	golden.Compare(t, "exception.text", text.Bytes())

	o := newJSON(&forMachines, Style{})
	o.Begin(&Head{Images: func() []stacks.Image { return nil }})
	o.Thread(thrown())
	o.End(&stacks.Summary{})
	if !json.Valid(forMachines.Bytes()) {
		t.Errorf("no JSON: %s", forMachines.Bytes())
	}
	golden.Compare(t, "exception.json", forMachines.Bytes())

	// A stack trace that is not on the stack is shown, and not too much of it.
	th := thrown()
	th.Frames, th.Exception.Inner, th.Exception.All = th.Frames[:1], nil, nil
	for len(th.Exception.Frames) < 2*maxTraceLines {
		th.Exception.Frames = append(th.Exception.Frames, th.Exception.Frames[0])
	}
	text.Reset()
	newText(&text, Style{}).Thread(th)
	if n := strings.Count(text.String(), "  at App.Program."); n != maxTraceLines || !strings.Contains(text.String(), "... 30 more frames, not shown") {
		t.Errorf("%d lines of the stack trace:\n%s", n, text.String())
	}
}
