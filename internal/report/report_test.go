package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/golden"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/stacks"
)

// sample is a dump with one of everything.
func sample() (*Head, []*stacks.Thread, *stacks.Summary) {
	h := &Head{
		Dump: stacks.Dump{Path: "core.3755", Format: "elf-core", OS: "linux", Arch: "amd64", PID: 3755,
			Crash: &stacks.Crash{TID: 3755, Signal: 11, Code: 1, Address: 0, HasAddr: true},
			Runtimes: []stacks.Runtime{{Kind: "coreclr", Version: "10.0.12", Image: "libcoreclr.so", How: "descriptor and table",
				Commit: "3879076d9a06", Lacks: []string{"Thread.Frame", "Frame.Identifier"}}}},
		Cause: func() *stacks.Cause {
			return &stacks.Cause{TID: 3755, Text: "SIGSEGV writing 0x0", Signal: &stacks.Signal{Name: "SIGSEGV", Code: "SEGV_MAPERR", HasAddr: true}}
		},
		Images: func() []stacks.Image {
			return []stacks.Image{
				{Name: "libcoreclr.so", Path: "/app/libcoreclr.so", ID: "d87b5d01", Span: arch.Span{Lo: 0x7f63c8200000, Hi: 0x7f63c8900000}, Bytes: "file"},
				{Name: "libgone.so", ID: "abcd", Span: arch.Span{Lo: 0x7f63c9000000, Hi: 0x7f63c9010000}, Bytes: "none"},
			}
		},
	}
	pc := func(a arch.Addr) arch.PC { return arch.PC{Addr: a} }
	threads := []*stacks.Thread{
		{TID: 3755, Name: "main\x1b[31m", ManagedID: 1, Mode: stacks.Cooperative, Crashed: true,
			Exception: &stacks.Exception{Type: "System.NullReferenceException", Message: "a \"quoted\" text\n", HasMessage: true, Address: 0x7f0012345678},
			Frames: []stacks.Frame{
				{PC: arch.PC{Exact: true}, SP: 0x7ffd0000, By: "context", Place: &stacks.Place{Kind: stacks.Native}}, // called a null pointer
				{PC: pc(0x7f63c8aa65d8), SP: 0x7ffd0010, By: "eh_frame", Place: &stacks.Place{Kind: stacks.Native, Module: "libc.so.6",
					Function: "pthread_cond_wait", Symbol: "pthread_cond_wait@@GLIBC_2.3.2", Offset: 0x1e8}},
				{PC: pc(0x7f634a2a205b), SP: 0x7ffd0100, By: "codes", Place: &stacks.Place{Kind: stacks.Managed, Module: "System.Private.CoreLib.dll",
					Function: "System.Collections.Generic.Dictionary<__Canon, System.Collections.Generic.List<int>>.TryInsert(__Canon, System.Collections.Generic.List<int>, System.Collections.Generic.InsertionBehavior)",
					Offset:   0x3b, Method: &stacks.Method{ID: 0x7f6349001000, Token: 0x06001234, Name: "System.Collections.Generic.Dictionary`2.TryInsert", ILOffset: 0, FuncletKnown: true, Code: "r2r"}}},
				{PC: pc(0x7f634a2a3000), SP: 0x7ffd0180, By: "codes", Place: &stacks.Place{Kind: stacks.Managed, Function: "dynamicClass.IL_STUB_PInvoke",
					Offset: 0x80, Method: &stacks.Method{ID: 0x7f6349002000, Name: "dynamicClass.IL_STUB_PInvoke", ILOffset: -1, FuncletKnown: true, Code: "stub"}}},
				{Place: &stacks.Place{Kind: stacks.Gap, Why: &stacks.Stop{Reason: "no_rule", Text: "no source knows how to leave this frame, in libgone.so (abcd)"}}},
				{PC: pc(0x7f634a2a4000), SP: 0x7ffd0200, By: "explicit_frame", Place: &stacks.Place{Kind: stacks.Managed, Module: "app.dll", Function: "App.Program.Main(string[])",
					File: `C:\src\app\Program.cs`, Line: 12,
					Inlined: []*stacks.Place{{Kind: stacks.Inline, Module: "app.dll", Function: "App.Point.Norm()", File: `C:\src\app\Point.cs`, Line: 7,
						Method: &stacks.Method{ID: 0x7f6349004000, Token: 0x06000009, Name: "App.Point.Norm", ILOffset: 3, FuncletKnown: true, Code: "jit"}}},
					Method: &stacks.Method{ID: 0x7f6349003000, Token: 0x06000001, Name: "App.Program.Main", ILOffset: 17, Funclet: true, FuncletKnown: true, Code: "jit"}}},
			},
			Stop: stacks.Stop{Reason: "end_of_stack", PC: 0x7f634a2a4000, Complete: true, Text: "the unwind information marks this frame as outermost"}},
		{TID: 3756, ManagedID: 2, Mode: stacks.Preemptive, Role: code.RoleFinalizer,
			Frames: []stacks.Frame{{PC: arch.PC{Addr: 0x7f63c9001234, Exact: true}, SP: 0x7ffd0000, By: "context", Place: &stacks.Place{Kind: stacks.Native, Module: "libgone.so", Link: 0x1234}}},
			Stop:   stacks.Stop{Reason: "no_rule", PC: 0x7f63c9001234, Text: "no source knows how to leave this frame, in libgone.so (abcd)"}},
		{TID: 3758, Frames: []stacks.Frame{{PC: arch.PC{Addr: 0x7f63c8aa65d8, Exact: true}, SP: 0x7ffd0000, By: "context", Place: &stacks.Place{Kind: stacks.Native, Module: "libc.so.6"}}},
			Omitted: stacks.Omitted{Frames: 94, Gaps: 1},
			Stop:    stacks.Stop{Reason: "end_of_stack", PC: 0x7f63c8aa7000, Complete: true, Text: "the unwind information marks this frame as outermost"}},
		{TID: 3757, Stop: stacks.Stop{Reason: "not_started", Text: "no registers to start from"}},
	}
	tail := &stacks.Summary{
		Warnings: []stacks.Warning{{Code: "core_cut", Text: "the file ends before its memory does", Offset: 0x1000}, {Code: "x", Text: "no place", Offset: -1}},
		Missing: []stacks.Missing{{Kind: stacks.MissingImage, Name: "libgone.so", ID: "abcd", Stops: 2, Unnamed: 1},
			{Kind: stacks.MissingPDB, Name: "app.pdb", ID: "0123456789ABCDEF0123456789ABCDEFFFFFFFFF", Unlined: 3}},
		Counts: stacks.Counts{Threads: 4, Whole: 1, Gapped: 1, Frames: 6, Managed: 3, Unnamed: 2, Gaps: 1},
	}
	return h, threads, tail
}

func render(t testing.TB, format string, style Style) []byte {
	t.Helper()
	var out bytes.Buffer
	o, err := New(&out, format, style)
	if err != nil {
		t.Fatal(err)
	}
	h, threads, tail := sample()
	if err := o.Begin(h); err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		if err := o.Thread(th); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.End(tail); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOutputs(t *testing.T) {
	for _, o := range outputs {
		golden.Compare(t, "stacks."+o.name, render(t, o.name, Style{}))
	}
	golden.Compare(t, "stacks-v.text", render(t, "text", Style{Verbose: true}))
	golden.Compare(t, "stacks-100.text", render(t, "text", Style{Width: 100}))
	golden.Compare(t, "stacks-color.text", render(t, "text", Style{Color: true}))
	if _, err := New(io.Discard, "xml", Style{}); err == nil || !strings.Contains(err.Error(), "json") {
		t.Errorf("an unknown format gives %v, which does not name the known ones", err)
	}
}

func TestInfo(t *testing.T) {
	h, threads, tail := sample()
	info := &Info{Head: h, Tail: tail}
	for _, th := range threads {
		info.Threads = append(info.Threads, *th)
	}
	for _, f := range []string{"text", "json"} {
		var out bytes.Buffer
		if err := Write(&out, f, Style{}, info); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "info."+f, out.Bytes())
	}
}

// A fault whose address is not known is not one at a null pointer.
func TestCause(t *testing.T) {
	for _, tt := range []struct {
		cause      *stacks.Cause
		json, text string
	}{
		{&stacks.Cause{TID: 1, Text: "SIGSEGV writing 0x0", Signal: &stacks.Signal{Name: "SIGSEGV", Code: "SEGV_MAPERR", HasAddr: true}},
			`"crash": {"tid": 1, "text": "SIGSEGV writing 0x0", "signal": {"name": "SIGSEGV", "code": "SEGV_MAPERR", "address": "0x0"}, "code": null}`,
			"\nSIGSEGV writing 0x0 in thread 1\n"},
		{&stacks.Cause{TID: 1, Text: "unhandled A.B: \x1b[2J", Signal: &stacks.Signal{Name: "SIGABRT"}},
			`"signal": {"name": "SIGABRT", "code": null, "address": null}, "code": null}`, "\nunhandled A.B: \ufffd[2J, in thread 1\n"},
		{&stacks.Cause{TID: 1, Text: "stack overflow", Code: 0xc00000fd}, `"signal": null, "code": "0xc00000fd"}`, "\nstack overflow, in thread 1\n"},
		{nil, `"crash": null,`, "amd64, .NET 10.0.12 (libcoreclr.so)\n.NET"},
	} {
		for form, want := range map[string]string{"json": tt.json, "text": tt.text} {
			var out bytes.Buffer
			h, _, tail := sample()
			h.Cause = func() *stacks.Cause { return tt.cause }
			if err := Write(&out, form, Style{}, &Info{Head: h, Tail: tail}); err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%v, no %s in\n%s", err, want, out.String())
			}
		}
	}
}

func TestMethods(t *testing.T) {
	h, _, tail := sample()
	t0 := &MethodTable{Head: h, Omitted: 3, Tail: &stacks.Summary{Warnings: tail.Warnings}}
	t0.List = []stacks.Compiled{
		{Code: arch.Span{Lo: 0x7f8225491860, Hi: 0x7f8225492135}, ID: 0x7f82257b9b30, Name: "App.Program+<>c.<Main>b__0", Source: "clr", Kind: "jit", Function: "App.Program.Main.lambda()"},
		{Code: arch.Span{Lo: 0x7f8225493000, Hi: 0x7f8225493010}, Source: "clr", Kind: "stub"},
	}
	for _, form := range t0.forms() {
		var out bytes.Buffer
		if err := Write(&out, form.name, Style{}, t0); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "methods."+form.name, out.Bytes())
	}
	t0.List = slices.Repeat(t0.List, 1000) // more than one buffer
	var out bytes.Buffer
	if err := Write(&out, "json", Style{}, t0); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%d methods do not give JSON: %v", len(t0.List), err)
	}
}

// The shape that docs/json.md promises. What may be null is a pointer.
type (
	shape struct {
		Schema int
		Dump   shapeDump
		Crash  *struct {
			TID    *uint32
			Text   *string
			Signal *struct{ Name, Code, Address *string }
			Code   *string
		}
		Runtimes []struct {
			Kind, Version, Image, How, Commit *string
			Lacks                             []string
		}
		Images  []struct{ Name, Path, ID, Base, End, Bytes *string }
		Threads []shapeThread
		Missing []struct {
			Kind, Name, ID *string
			Stacks, Names  *int
		}
		Warnings []struct {
			Code, Text *string
			Offset     *int64
		}
	}
	shapeDump struct {
		Path, Format, OS, Arch *string
		PID                    *int
		Crash                  *struct {
			TID     *uint32
			Signal  *uint32
			Code    *int32
			Address *string
		}
	}
	shapeThread struct {
		TID       *uint32
		Name      *string
		ManagedID *uint32 `json:"managed_id"`
		Mode      *string
		Role      *string
		Crashed   *bool
		Exception *shapeException
		Frames    []shapeFrame
		Omitted   *int
		Gaps      *int `json:"omitted_gaps"`
		Stop      struct {
			Reason, PC, At *string
			Complete       *bool
			Text           *string
		}
	}
	shapeException struct {
		Type, Message, Address, HResult *string
		Inner                           *shapeException
		All                             []shapeException
		Frames                          []struct {
			shapeFrame
			Rethrown *bool
		}
		Lacks []string
	}
	shapeFrame struct {
		Kind, PC, SP                            *string
		Exact                                   *bool
		By, Module, Function, Symbol, File, Why *string
		Offset                                  *uint64
		Line                                    *int
		Method                                  *struct {
			ID, Token, Name *string
			ILOffset        *uint32 `json:"il_offset"`
			Funclet         *bool
			Code, Version   *string
		}
	}
)

// TestUnknown: what a dump lacks is null in JSON, and not shown as the opposite for eyes.
func TestUnknown(t *testing.T) {
	f := stacks.Frame{Place: &stacks.Place{Kind: stacks.Managed, Function: "A.B()", Method: &stacks.Method{ILOffset: -1, Code: "jit"}}}
	if got := suffix(&f); got != " (handler?)" {
		t.Errorf("a frame that may be a handler's ends with %q", got)
	}
	b := jsonBuffer{}
	b.raw("{")
	b.place(f.Place)
	b.thread(&stacks.Thread{Exception: &stacks.Exception{}})
	b.raw("}")
	var got struct {
		Method    struct{ ID, Token, Name, IL_Offset, Funclet, Version any }
		Exception struct{ Type, Message, Address, HResult, Inner, All any }
	}
	want := got
	if err := json.Unmarshal(b.buf, &got); err != nil || got != want {
		t.Errorf("%s: %+v, %v", b.buf, got, err)
	}
	// An empty message is one.
	b = jsonBuffer{sink{buf: []byte("{")}}
	b.thread(&stacks.Thread{Exception: &stacks.Exception{HasMessage: true}})
	if !bytes.Contains(b.buf, []byte(`"message": ""`)) {
		t.Errorf("an empty message is %s", b.buf)
	}
}

func TestJSONShape(t *testing.T) {
	d := json.NewDecoder(bytes.NewReader(render(t, "json", Style{})))
	d.DisallowUnknownFields()
	var s shape
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("something follows the object: %v", err)
	}
	// Every field is there, null or not.
	var raw map[string]any
	if err := json.Unmarshal(render(t, "json", Style{}), &raw); err != nil {
		t.Fatal(err)
	}
	thread := raw["threads"].([]any)[0].(map[string]any)
	for _, k := range []string{"tid", "name", "managed_id", "mode", "crashed", "exception", "frames", "omitted", "omitted_gaps", "stop"} {
		if _, ok := thread[k]; !ok {
			t.Errorf("a thread has no %q", k)
		}
	}
	for _, f := range thread["frames"].([]any) {
		f := f.(map[string]any)
		for _, k := range []string{"kind", "pc", "sp", "exact", "by", "module", "function", "offset", "file", "line", "method", "why"} {
			if _, ok := f[k]; !ok {
				t.Errorf("a frame has no %q", k)
			}
		}
		for k, v := range f {
			if v == "" || v == "0x" {
				t.Errorf("%s is %q; what is not known is null", k, v)
			}
		}
	}
	// A null pointer that was called is a pc that is known.
	if f := s.Threads[0].Frames[0]; f.PC == nil || *f.PC != "0x0" || f.Function != nil || f.Offset != nil {
		t.Errorf("the frame at 0 is %+v", f)
	}
	if f := s.Threads[0].Frames[2]; f.Method.ILOffset == nil || *f.Method.ILOffset != 0 {
		t.Errorf("IL offset 0 got lost")
	}
	if f := s.Threads[0].Frames[4]; f.PC != nil || f.SP != nil || f.By != nil || f.Why == nil {
		t.Errorf("the gap is %+v", f)
	}
}

func TestJSONText(t *testing.T) {
	for _, s := range []string{"", "a", "List<int> & more", "\"\\\b\f\n\r\t\x00\x1f", "é 𝄞 \u2028", "bad \xff utf-8"} {
		b := jsonBuffer{}
		b.text(s)
		var got string
		if err := json.Unmarshal(b.buf, &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q is written as %s, which reads %q (%v)", s, b.buf, got, err)
		}
		if bytes.Contains(b.buf, []byte(`\u003c`)) {
			t.Errorf("%q is written as %s", s, b.buf)
		}
	}
}

// TestWidth holds the promise that no line of a frame is longer than the
// terminal is wide, whatever the name.
func TestWidth(t *testing.T) {
	_, threads, _ := sample()
	for width := 70; width < 260; width += 7 {
		for _, verbose := range []bool{false, true} {
			if verbose && width < 110 {
				continue
			}
			var out bytes.Buffer
			o := newText(&out, Style{Width: width, Verbose: verbose})
			th := *threads[0]
			th.Frames = append([]stacks.Frame(nil), th.Frames[:4]...)
			if err := o.Thread(&th); err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(out.String(), "\n")[2:6] {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("width %d: line of frame %d has %d characters: %s", width, i, n, line)
				}
			}
		}
	}
}

func TestShorten(t *testing.T) {
	const name = "System.Collections.Generic.Dictionary<__Canon, List<int>>.TryInsert(__Canon, List<int>, InsertionBehavior)"
	tests := []struct {
		name string
		n    int
		want string
	}{
		{name, 0, name + "+0x3b"},
		{name, 200, name + "+0x3b"},
		{name, 90, "System.Collections.Generic.Dictionary<__Canon, List<int>>.TryInsert(…)+0x3b"},
		{name, 70, "System.Collections.Generic.Dictionary<…>.TryInsert(…)+0x3b"},
		{name, 40, "….Dictionary<…>.TryInsert(…)+0x3b"},
		{name, 24, "….Dict…TryInsert(…)+0x3b"},
		{"App.Program.Main(string[])", 20, "….Pr…am.Main(…)+0x3b"},
		{"App.Type..ctor(int, int)", 22, "App.Type..ctor(…)+0x3b"},
		{"std::__detail::operator<", 20, "std:…:operator<+0x3b"},
		{"a", 1, "…+0x3b"},
	}
	for _, tt := range tests {
		if got := shorten(tt.name, "+0x3b", tt.n); got != tt.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.name, tt.n, got, tt.want)
		}
	}
}

func TestFold(t *testing.T) {
	frame := func(n int) stacks.Frame {
		return stacks.Frame{PC: arch.PC{Addr: arch.Addr(0x1000 + n)}, Place: &stacks.Place{Kind: stacks.Native, Function: fmt.Sprint("f", n)}}
	}
	th := &stacks.Thread{TID: 1, Stop: stacks.Stop{Complete: true, Text: "end"}, Frames: []stacks.Frame{frame(9)}}
	for range 1000 {
		th.Frames = append(th.Frames, frame(0), frame(1))
	}
	th.Frames = append(th.Frames, frame(5), frame(5), frame(6))
	var out bytes.Buffer
	newText(&out, Style{Fold: true}).Thread(th)
	golden.Compare(t, "fold.text", out.Bytes())
	out.Reset()
	newText(&out, Style{}).Thread(th)
	if n := strings.Count(out.String(), "\n"); n != len(th.Frames)+3 {
		t.Errorf("%d lines without folding for %d frames", n, len(th.Frames))
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "é": "é", "a\x1b[2Jb": "a\ufffd[2Jb", "x\u202ey": "x\ufffdy", "\xff": "\ufffd", "a\nb": "a\ufffdb"} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("A.B<C>.D(E)", 10)
	f.Fuzz(func(t *testing.T, name string, n int) {
		if n < 1 || n > 1000 {
			return
		}
		if got := shorten(name, "", n); length(got) > n && length(got) > length(name) {
			t.Errorf("shorten(%q, %d) = %q", name, n, got)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	_, threads, _ := sample()
	th := *threads[0]
	for len(th.Frames) < 5000 {
		th.Frames = append(th.Frames, threads[0].Frames...)
	}
	o := newJSON(io.Discard, Style{})
	for b.Loop() {
		o.Thread(&th)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(th.Frames)), "ns/frame")
}
