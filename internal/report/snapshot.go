package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/unwind"
)

// A Snapshot is one replayed call of DoStackSnapshot.
type Snapshot struct {
	Walk     string // label of the request; "" if it has none
	Thread   Thread
	ThreadID profiler.ThreadID // of the target; 0 if it has no Thread object
	Mode     profiler.Mode
	Flags    uint32
	Seeded   bool // a seed was given
	HR       profiler.HRESULT
	Why      string         // what decided HR; "" if nothing is to be said
	Missing  bool           // the walk ends where it does because the dump lacks what it reads
	Error    string         // why the call could not be made; HR then means nothing
	Made     int            // callbacks in all
	Calls    []SnapshotCall // those that are shown
}

// Whole reports whether the answer is the runtime's own.
func (s *Snapshot) Whole() bool { return s.Error == "" && !s.Missing }

// A SnapshotCall is one callback that the runtime would have made.
type SnapshotCall struct {
	Function       profiler.FunctionID
	IP, PC, SP, FP arch.Addr
	ContextSize    uint32
	Context        []byte // nil without COR_PRF_SNAPSHOT_REGISTER_CONTEXT
	Name           Frame  // how the frame is called, if it was asked for
}

// Snapshots writes replayed calls, one after the other.
type Snapshots struct {
	w    io.Writer
	text bool
	page page
	json jsonBuffer

	calls int
}

// NewSnapshots returns a writer to w in one of the forms text and jsonl.
func NewSnapshots(w io.Writer, format string, style Style) (*Snapshots, error) {
	switch format {
	case "text", "jsonl":
		return &Snapshots{w: w, text: format == "text", page: page{style: style}}, nil
	}
	return nil, fmt.Errorf("no format %q; there are text, jsonl", format)
}

// Begin is called once, before the first call.
func (o *Snapshots) Begin(h *Head) error {
	if !o.text {
		return nil
	}
	o.page.title(h)
	return o.flush()
}

// Write writes one call.
func (o *Snapshots) Write(s *Snapshot) error {
	o.calls++
	if o.text {
		o.pageOf(s)
	} else {
		o.lines(s)
	}
	return o.flush()
}

// End is called once, after the last call, and tells what the dump lacks.
func (o *Snapshots) End(t *Tail) error {
	if o.text {
		if o.calls == 0 {
			o.page.line(plain, "")
			o.page.line(yellow, "no calls: the runtime knows no thread of the dump")
		}
		o.page.tail(t)
		return o.flush()
	}
	b := &o.json
	for _, w := range t.Warnings {
		b.raw("{")
		b.str("ev", "warning")
		b.str("code", w.Code)
		b.str("text", w.Text)
		b.numIf("offset", w.Offset, w.Offset >= 0)
		b.raw("}\n")
	}
	return o.flush()
}

func (o *Snapshots) flush() error {
	b := &o.page.buf
	if !o.text {
		b = &o.json.buf
	}
	_, err := o.w.Write(*b)
	*b = (*b)[:0]
	return err
}

// lines writes what the recorder of the real runtime writes: a line for each
// callback, then one for the call.
func (o *Snapshots) lines(s *Snapshot) {
	b := &o.json
	for i := range s.Calls {
		c := &s.Calls[i]
		b.raw("{")
		b.str("ev", "frame")
		if s.Walk != "" {
			b.str("walk", s.Walk)
		}
		b.num("os_tid", int64(s.Thread.TID))
		b.num("i", int64(i))
		b.addrIf("func", uint64(c.Function), true)
		b.addrIf("ip", uint64(c.IP), true)
		b.addrIf("pc", uint64(c.PC), true)
		b.addrIf("sp", uint64(c.SP), true)
		b.addrIf("fp", uint64(c.FP), true)
		b.num("ctx_size", int64(c.ContextSize))
		if c.Context != nil {
			b.key("ctx")
			b.raw(`"`)
			b.buf = hex.AppendEncode(b.buf, c.Context)
			b.raw(`"`)
		}
		b.raw("}\n")
	}
	b.raw("{")
	b.str("ev", "walk")
	if s.Walk != "" {
		b.str("walk", s.Walk)
	}
	b.addrIf("thread", uint64(s.ThreadID), true)
	b.num("os_tid", int64(s.Thread.TID))
	b.num("flags", int64(s.Flags))
	b.str("mode", s.Mode.String())
	b.str("seed", map[bool]string{false: "none", true: "given"}[s.Seeded])
	if s.Error != "" {
		b.str("hr", "")
		b.str("error", s.Error)
	} else {
		b.str("hr", s.HR.String())
		b.str("hr_name", s.HR.Name())
	}
	b.num("frames", int64(s.Made))
	b.num("omitted", int64(s.Made-len(s.Calls)))
	b.str("why", s.Why)
	b.raw("}\n")
}

func (o *Snapshots) pageOf(s *Snapshot) {
	p := &o.page
	p.line(plain, "")
	p.line(bold, "Thread "+s.Thread.heading())
	width := 1
	for i := range s.Calls {
		width = max(width, min(length(s.Calls[i].Name.Module), maxModule))
	}
	digits := len(strconv.Itoa(max(len(s.Calls)-1, 0)))
	for i := range s.Calls {
		c := &s.Calls[i]
		name := c.Name.Function
		if name == "" {
			name = "-"
		}
		if c.Function == 0 {
			name = "[native frames, the youngest returning to] " + name
		}
		head := fmt.Sprintf("  %*d  %#016x  ", digits, i, uint64(c.IP))
		if p.style.Verbose {
			head += fmt.Sprintf("%#016x  %#016x  ", uint64(c.SP), uint64(c.Function))
		}
		color := plain
		if c.Function == 0 {
			color = dim
		}
		head += pad(cut(clean(c.Name.Module), width), width) + "  "
		p.line(color, head+p.fit(name, c.Name.suffix(), length(head)))
	}
	if more := s.Made - len(s.Calls); more > 0 {
		p.line(dim, fmt.Sprintf("  %*s  ... %s, not shown", digits, "", plural(more, "more callback", "more callbacks")))
	}
	seed := "no seed"
	if s.Seeded {
		seed = "with a seed"
	}
	if s.Error != "" {
		p.line(yellow, "  "+s.Error)
		return
	}
	last := fmt.Sprintf("%v %s after %s (%v, %s)", s.HR, s.HR.Name(), plural(s.Made, "callback", "callbacks"), s.Mode, seed)
	if s.Why != "" {
		last += ": " + s.Why
	}
	color := dim
	if s.HR != profiler.S_OK {
		color = yellow
	}
	p.line(color, "  "+strings.Repeat(" ", digits)+"  "+clean(last))
}

// NameCalls names the callbacks of s, which were made for t.
func (b *Builder) NameCalls(s *Snapshot, t *loader.Thread) {
	frames := make([]managed.Frame, len(s.Calls))
	for i := range s.Calls {
		c, f := &s.Calls[i], &frames[i]
		f.PC, f.SP = arch.PC{Addr: c.IP}, c.SP
		if c.Function != 0 {
			f.Kind = managed.Managed
			f.Code, f.Runtime = b.s.Lookup(c.IP)
		}
	}
	named := b.Stack(t, frames, unwind.Stop{Reason: unwind.EndOfStack})
	for i := range s.Calls {
		s.Calls[i].Name = named.Frames[i]
	}
}
