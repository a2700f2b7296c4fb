package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seamwalk/seam/managed/stacks"
)

// A Head is what all results begin with.
type Head struct {
	stacks.Dump
	// Images returns the images by address. It is a function because it looks
	// for a file of each, which takes longer than a small dump's stacks, and text
	// does not show them.
	Images func() []stacks.Image
	// Cause returns what ended the process, nil if nothing has. It is a function
	// because it may walk a stack; nil where a result does not tell it.
	Cause func() *stacks.Cause
}

// An Output writes stacks in one form. Its errors are the writer's.
type Output interface {
	// Begin is called once, before the first thread.
	Begin(*Head) error
	// Thread is called for each thread, in order. It keeps nothing of t but its
	// places.
	Thread(t *stacks.Thread) error
	// End is called once, after the last.
	End(*stacks.Summary) error
}

// Style is how results for eyes look. Outputs for machines ignore it.
type Style struct {
	Color   bool
	Width   int  // of a line, in characters; 0: as long as it takes
	Verbose bool // show stack pointers, how each frame was found, and whole paths of source files
	Fold    bool // write repeated runs of frames once
}

// An output is a form that stacks can be written in.
type output struct {
	name, doc string
	open      func(io.Writer, Style) Output
}

// outputs lists the forms. A new one is a file of its own and a line here.
var outputs = []output{
	{"text", "for eyes", newText},
	{"json", "one JSON object, docs/json.md", newJSON},
}

// Formats returns the names of the forms, the default first.
func Formats() []string {
	names := make([]string, len(outputs))
	for i, o := range outputs {
		names[i] = o.name
	}
	return names
}

// New returns an output of the given form to w. The error says that there is no
// such form, and which there are.
func New(w io.Writer, format string, style Style) (Output, error) {
	for _, o := range outputs {
		if o.name == format {
			return o.open(w, style), nil
		}
	}
	return nil, unknownForm(format, Formats()...)
}

// A Result is what a command has found, to be written in one go: [Info],
// [Seeds], [Views] or [MethodTable].
type Result interface {
	// forms returns the forms that the result can be written in.
	forms() []form
}

// A form writes a result.
type form struct {
	name  string
	write func(w io.Writer, style Style) error
}

// Write writes r in the given form.
func Write(w io.Writer, format string, style Style, r Result) error {
	forms := r.forms()
	i := slices.IndexFunc(forms, func(f form) bool { return f.name == format })
	if i < 0 {
		names := make([]string, len(forms))
		for k, f := range forms {
			names[k] = f.name
		}
		return unknownForm(format, names...)
	}
	return forms[i].write(w, style)
}

func unknownForm(format string, known ...string) error {
	return fmt.Errorf("no format %q; there are %s", format, strings.Join(known, ", "))
}

// textAndJSON are the forms of most results.
func textAndJSON(text func(*page), json func(*jsonBuffer)) []form {
	return []form{
		{"text", func(w io.Writer, style Style) error {
			p := page{sink: sink{w: w}, style: style}
			text(&p)
			return p.flush()
		}},
		{"json", func(w io.Writer, _ Style) error {
			b := jsonBuffer{sink{w: w}}
			json(&b)
			return b.flush()
		}},
	}
}

// chunk is how many bytes are gathered before they are written. The stack of an
// overflow, with 260,000 frames, is 100 MB of JSON.
const chunk = 1 << 16

// A sink gathers bytes for a writer, and keeps its first error.
type sink struct {
	w   io.Writer
	buf []byte
	err error
}

// more writes what was gathered, if that is much, and reports whether the writer
// still takes it.
func (s *sink) more() bool {
	if len(s.buf) > chunk {
		s.flush()
	}
	return s.err == nil
}

// flush writes what was gathered.
func (s *sink) flush() error {
	if s.err == nil {
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
	return s.err
}
