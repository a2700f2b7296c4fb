package report

import (
	"fmt"
	"io"
	"strings"
)

// An Output writes stacks in one form.
type Output interface {
	// Begin is called once, before the first thread.
	Begin(*Head) error
	// Thread is called for each thread, in order. It keeps nothing of t.
	Thread(t *Thread) error
	// End is called once, after the last.
	End(*Tail) error
}

// Style is how results for eyes look. Outputs for machines ignore it.
type Style struct {
	Color   bool
	Width   int  // of a line, in characters; 0: as long as it takes
	Verbose bool // show stack pointers and how each frame was found
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

// New returns an output of the given form to w.
func New(w io.Writer, format string, style Style) (Output, error) {
	for _, o := range outputs {
		if o.name == format {
			return o.open(w, style), nil
		}
	}
	return nil, fmt.Errorf("no format %q; there are %s", format, strings.Join(Formats(), ", "))
}
