package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/managed/stacks"
)

// A textOutput writes stacks for eyes: a heading for each thread, a line for
// each frame, and why the stack ended on the last line.
type textOutput struct{ page }

func newText(w io.Writer, style Style) Output {
	return &textOutput{page{sink{w: w}, style}}
}

// Widths of columns.
const (
	maxModule = 28 // at most
	addrWidth = len("0x0123456789abcdef")
	byWidth   = len("explicit_frame")
)

func (o *textOutput) Begin(h *Head) error {
	o.title(h)
	o.cause(h)
	return o.flush()
}

func (o *textOutput) Thread(t *stacks.Thread) error {
	o.line(plain, "")
	o.heading(t)
	o.exception(t)
	most, width := maxModule, 1
	if o.style.Width > 0 {
		most = min(most, o.style.Width/4) // a narrow terminal is for functions
	}
	for i := range t.Frames {
		width = max(width, min(length(t.Frames[i].Module), most))
	}
	c := columns{digits: len(strconv.Itoa(max(len(t.Frames)-1, 0))), module: width}
	for i := 0; i < len(t.Frames) && o.more(); {
		run, times := 1, 1
		if o.style.Fold {
			run, times = repeats(t.Frames[i:])
		}
		for k := range run {
			o.frame(&t.Frames[i+k], i+k, c)
		}
		if times > 1 {
			what := "this frame"
			if run > 1 {
				what = fmt.Sprintf("these %d frames", run)
			}
			o.line(dim, fmt.Sprintf("  %*s  ... %s %d more times", c.digits, "", what, times-1))
		}
		i += run * times
	}
	if t.Omitted != (stacks.Omitted{}) {
		o.line(dim, fmt.Sprintf("  %*s  ... %s", c.digits, "", omitted(t.Omitted)))
	}
	color := dim
	if !t.Stop.Complete {
		color = yellow
	}
	o.line(color, "  "+strings.Repeat(" ", c.digits)+"  "+clean(t.Stop.String()))
	return o.flush()
}

func (o *textOutput) End(t *stacks.Summary) error {
	o.line(plain, "")
	o.line(bold, total(&t.Counts))
	o.tail(t)
	return o.flush()
}

// heading says in a line which thread it is.
func (p *page) heading(t *stacks.Thread) { p.line(bold, "Thread "+clean(t.String())) }

// omitted says how much was left out.
func omitted(o stacks.Omitted) string {
	s := plural(o.Frames, "more frame", "more frames")
	if o.Gaps > 0 {
		s += " and " + plural(o.Gaps, "gap", "gaps")
	}
	return s + ", not shown"
}

// total sums up in a line.
func total(c *stacks.Counts) string {
	if c.Threads == 0 {
		return "no stacks: the dump tells of no thread"
	}
	s := fmt.Sprintf("%s, %s complete", plural(c.Threads, "stack", "stacks"), count(c.Whole, c.Threads))
	if c.Gapped > 0 {
		s += fmt.Sprintf(", %d with gaps", c.Gapped)
	}
	if cut := c.Threads - c.Whole - c.Gapped; cut > 0 && c.Gapped > 0 {
		s += fmt.Sprintf(", %d cut short", cut)
	}
	s += fmt.Sprintf("; %s, %d of them managed", plural(c.Frames, "frame", "frames"), c.Managed)
	if c.Unnamed > 0 {
		s += fmt.Sprintf(", %d without a name", c.Unnamed)
	}
	if c.Gaps > 0 {
		s += "; " + plural(c.Gaps, "gap", "gaps")
	}
	return s
}

func count(n, of int) string {
	if n == of {
		return "all"
	}
	return strconv.Itoa(n)
}

// columns are the widths of a stack's columns, in characters.
type columns struct{ digits, module int }

// frame writes the n-th frame of a stack.
func (o *textOutput) frame(f *stacks.Frame, n int, c columns) {
	if f.Kind == stacks.Gap {
		o.line(yellow, fmt.Sprintf("  %*s  -- %s", c.digits, "", clean(f.String())))
		return
	}
	for _, call := range f.Inlined {
		o.frame(&stacks.Frame{PC: f.PC, SP: f.SP, Place: call}, n, c)
	}
	o.on(dim)
	begin := len(o.buf)
	b := append(o.buf, "  "...)
	if f.Kind == stacks.Inline {
		b = appendPadded(append(appendPadded(b, "", c.digits), "  "...), "inlined", addrWidth)
		if o.style.Verbose {
			b = appendPadded(append(b, "  "...), "", addrWidth+2+byWidth)
		}
	} else {
		b = o.appendWhich(b, f, n, c)
	}
	module := f.Module
	if module == "" {
		module = "-"
	}
	b = append(b, "  "...)
	used := len(b) - begin + c.module + 2
	o.buf = append(appendPadded(b, cut(clean(module), c.module), c.module), "  "...)
	o.off(dim)
	color := plain
	if f.Kind == stacks.Managed || f.Kind == stacks.Inline {
		color = green
	}
	where := o.where(f, used)
	o.on(color)
	if o.style.Width > 0 {
		o.buf = append(o.buf, shorten(clean(f.Function), suffix(f), max(o.style.Width-used-length(where), minName))...)
	} else {
		o.buf = f.AppendSuffix(append(o.buf, clean(f.Function)...))
	}
	o.off(color)
	o.line(dim, where)
}

// appendWhich appends which frame it is: its number, its pc, and with -v its stack
// pointer and how it was found.
func (o *textOutput) appendWhich(b []byte, f *stacks.Frame, n int, c columns) []byte {
	var number [20]byte
	b = appendPadded(b, string(strconv.AppendInt(number[:0], int64(n), 10)), -c.digits)
	b = appendAddr(append(b, "  "...), f.PC.Addr)
	if !o.style.Verbose {
		return b
	}
	b = append(b, "  "...)
	if f.SP != 0 {
		b = appendAddr(b, f.SP)
	} else {
		b = appendPadded(b, "-", addrWidth)
	}
	return appendPadded(append(b, "  "...), f.By, byWidth)
}

// where tells the line of source that f stands at, behind its function: with -v the
// path of the file, else its name. It is "" where that is not known, and where the
// rest of a line that has used characters in front has no room for it.
func (p *page) where(f *stacks.Frame, used int) string {
	if f.Line == 0 {
		return ""
	}
	file := f.File
	if !p.style.Verbose {
		file = file[strings.LastIndexAny(file, `/\`)+1:]
	}
	s := "  " + clean(file) + ":" + strconv.Itoa(f.Line)
	if p.style.Width > 0 && used+minName+length(s) > p.style.Width {
		return ""
	}
	return s
}

// suffix is what follows a function's name.
func suffix(f *stacks.Frame) string { return string(f.AppendSuffix(nil)) }

// repeats reports the shortest run of frames that fs begins with more than
// once, by what is called from where, and how often it is there.
func repeats(fs []stacks.Frame) (run, times int) {
	const longest = 16
	for run = 1; run <= longest && 2*run <= len(fs); run++ {
		n := run
		for n < len(fs) && same(&fs[n], &fs[n-run]) {
			n++
		}
		if times = n / run; times > 2 {
			return run, times
		}
	}
	return 1, 1
}

func same(a, b *stacks.Frame) bool {
	return a.Kind != stacks.Gap && a.Kind == b.Kind && a.PC == b.PC && a.Function == b.Function
}
