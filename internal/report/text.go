package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A textOutput writes stacks for eyes: a heading for each thread, a line for
// each frame, and why the stack ended on the last line.
type textOutput struct {
	w io.Writer
	page
}

func newText(w io.Writer, style Style) Output {
	return &textOutput{w: w, page: page{style: style}}
}

// Widths of columns.
const (
	maxModule = 28 // at most
	addrWidth = len("0x0123456789abcdef")
	byWidth   = len("explicit_frame")
)

func (o *textOutput) flush() error {
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err
}

func (o *textOutput) Begin(h *Head) error {
	o.title(h)
	return o.flush()
}

func (o *textOutput) Thread(t *Thread) error {
	o.line(plain, "")
	o.line(bold, "Thread "+t.heading())
	most, width := maxModule, 1
	if o.style.Width > 0 {
		most = min(most, o.style.Width/4) // a narrow terminal is for functions
	}
	for i := range t.Frames {
		width = max(width, min(length(t.Frames[i].Module), most))
	}
	digits := len(strconv.Itoa(max(len(t.Frames)-1, 0)))
	for i := 0; i < len(t.Frames); {
		if o.style.Fold {
			if run, times := repeats(t.Frames[i:]); times > 1 {
				for k := range run {
					o.frame(&t.Frames[i+k], i+k, digits, width)
				}
				what := "this frame"
				if run > 1 {
					what = fmt.Sprintf("these %d frames", run)
				}
				o.line(dim, fmt.Sprintf("  %*s  ... %s %d more times", digits, "", what, times-1))
				i += run * times
				continue
			}
		}
		o.frame(&t.Frames[i], i, digits, width)
		i++
		if len(o.buf) > chunk {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	if t.Omitted != (Omitted{}) {
		o.line(dim, fmt.Sprintf("  %*s  ... %s", digits, "", t.Omitted.sentence()))
	}
	color := dim
	if !t.Stop.Complete {
		color = yellow
	}
	o.line(color, "  "+strings.Repeat(" ", digits)+"  "+t.Stop.sentence())
	return o.flush()
}

func (o *textOutput) End(t *Tail) error {
	o.line(plain, "")
	o.line(bold, t.Counts.String())
	o.tail(t)
	return o.flush()
}

// sentence says how much was left out.
func (o Omitted) sentence() string {
	s := plural(o.Frames, "more frame", "more frames")
	if o.Gaps > 0 {
		s += " and " + plural(o.Gaps, "gap", "gaps")
	}
	return s + ", not shown"
}

// String sums up in a line.
func (c *Counts) String() string {
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
	if c.Gap > 0 {
		s += "; " + plural(c.Gap, "gap", "gaps")
	}
	return s
}

func count(n, of int) string {
	if n == of {
		return "all"
	}
	return strconv.Itoa(n)
}

// frame writes the n-th frame of a stack.
func (o *textOutput) frame(f *Frame, n, digits, width int) {
	if f.Kind == kindGap {
		_, why, _ := strings.Cut(f.Why, ": ") // the reason's stable name is for machines
		o.line(yellow, fmt.Sprintf("  %*s  -- frames may be missing here: %s", digits, "", clean(why)))
		return
	}
	o.on(dim)
	begin := len(o.buf)
	var number [20]byte
	b := append(o.buf, "  "...)
	b = appendPadded(b, string(strconv.AppendInt(number[:0], int64(n), 10)), -digits)
	b = appendAddr(append(b, "  "...), f.PC.Addr)
	if o.style.Verbose {
		b = append(b, "  "...)
		if f.SP != 0 {
			b = appendAddr(b, f.SP)
		} else {
			b = appendPadded(b, "-", addrWidth)
		}
		b = appendPadded(append(b, "  "...), f.By, byWidth)
	}
	module := f.Module
	if module == "" {
		module = "-"
	}
	b = append(b, "  "...)
	used := len(b) - begin + width + 2
	o.buf = append(appendPadded(b, cut(clean(module), width), width), "  "...)
	o.off(dim)
	color := plain
	if f.Kind == kindManaged {
		color = green
	}
	o.on(color)
	if o.style.Width > 0 {
		o.buf = append(o.buf, shorten(clean(f.Function), f.suffix(), max(o.style.Width-used, minName))...)
	} else {
		o.buf = f.appendSuffix(append(o.buf, clean(f.Function)...))
	}
	o.off(color)
	o.buf = append(o.buf, '\n')
}

// suffix is what follows a function's name: the offset in it; for code without
// a name its link address, which addr2line and disassemblers take, or what a
// debugger of the runtime takes.
func (f *Frame) suffix() string { return string(f.appendSuffix(nil)) }

func (f *Frame) appendSuffix(b []byte) []byte {
	switch {
	case f.Function == "" && f.Link != 0:
		b = strconv.AppendUint(append(b, "? [0x"...), uint64(f.Link), 16)
		return append(b, ']')
	case f.Function == "" && f.Method != nil && f.Method.ID != 0:
		b = strconv.AppendUint(append(b, "? [MethodDesc 0x"...), uint64(f.Method.ID), 16)
		return append(b, ']')
	case f.Function == "":
		return append(b, '?')
	}
	if f.Offset != 0 {
		b = strconv.AppendUint(append(b, "+0x"...), f.Offset, 16)
	}
	switch m := f.Method; {
	case m == nil:
	case m.Funclet:
		b = append(b, " (handler)"...)
	case !m.FuncletKnown:
		b = append(b, " (handler?)"...)
	}
	return b
}

func (s *Stop) sentence() string {
	if s.Complete {
		return "end: " + clean(s.Text)
	}
	return "stopped here: " + clean(s.Text)
}

// heading tells a thread in a line.
func (t *Thread) heading() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", t.TID)
	if t.Name != "" {
		fmt.Fprintf(&b, " %q", t.Name)
	}
	if t.Managed {
		mode := "preemptive"
		if t.Cooperative {
			mode = "cooperative"
		}
		fmt.Fprintf(&b, ", managed %d, %s", t.ManagedID, mode)
	}
	if t.Crashed {
		b.WriteString(", crashed")
	}
	if e := t.Exception; e != nil {
		typ := e.Type
		if typ == "" {
			typ = "an exception"
		}
		b.WriteString(", in " + clean(typ))
		if e.Message != "" {
			b.WriteString(": " + clean(e.Message))
		}
	}
	return b.String()
}

// repeats reports the shortest run of frames that fs begins with more than
// once, by what is called from where, and how often it is there.
func repeats(fs []Frame) (run, times int) {
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

func same(a, b *Frame) bool {
	return a.Kind != kindGap && a.Kind == b.Kind && a.PC == b.PC && a.Function == b.Function
}
