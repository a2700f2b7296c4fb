package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

// A Snapshot is one replayed call of DoStackSnapshot.
type Snapshot struct {
	Walk     string            // label of the request; "" if it has none
	Thread   stacks.Thread     // without its stack
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
	Context        []byte       // nil without COR_PRF_SNAPSHOT_REGISTER_CONTEXT
	Name           stacks.Place // what the code at IP is called, if it was asked for
}

// A Snapshots writes replayed calls, one after the other. Its errors are the
// writer's.
type Snapshots interface {
	// Begin is called once, before the first call.
	Begin(*Head) error
	// Call writes one call.
	Call(*Snapshot) error
	// End is called once, after the last call, and says what the dump lacks.
	End(*stacks.Summary) error
}

// NewSnapshots returns a writer to w in one of the forms text and jsonl. The
// error says that there is no such form.
func NewSnapshots(w io.Writer, format string, style Style) (Snapshots, error) {
	switch s := (sink{w: w}); format {
	case "text":
		return &snapshotText{page: page{s, style}}, nil
	case "jsonl":
		return &snapshotLines{jsonBuffer{s}}, nil
	}
	return nil, unknownForm(format, "text", "jsonl")
}

// snapshotLines writes JSON objects, each on a line: what the recorder of the
// real runtime writes, a line for each callback and one for the call.
type snapshotLines struct{ jsonBuffer }

func (b *snapshotLines) Begin(*Head) error { return nil }

func (b *snapshotLines) Call(s *Snapshot) error {
	for i := range s.Calls {
		b.raw("{")
		b.callback(s, i)
		b.raw("}\n")
	}
	b.raw("{")
	b.call(s)
	b.raw("}\n")
	return b.flush()
}

func (b *snapshotLines) End(t *stacks.Summary) error {
	for i := range t.Warnings {
		b.raw("{")
		b.str("ev", "warning")
		b.warning(&t.Warnings[i])
		b.raw("}\n")
	}
	return b.flush()
}

// label writes the label of the request that s answers, if it has one.
func (b *snapshotLines) label(s *Snapshot) {
	if s.Walk != "" {
		b.str("walk", s.Walk)
	}
}

// callback writes the fields of the i-th callback.
func (b *snapshotLines) callback(s *Snapshot, i int) {
	c := &s.Calls[i]
	b.str("ev", "frame")
	b.label(s)
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
}

// call writes the fields of the call.
func (b *snapshotLines) call(s *Snapshot) {
	b.str("ev", "walk")
	b.label(s)
	b.addrIf("thread", uint64(s.ThreadID), true)
	b.num("os_tid", int64(s.Thread.TID))
	b.num("flags", int64(s.Flags))
	b.str("mode", s.Mode.String())
	b.str("seed", map[bool]string{false: "none", true: "given"}[s.Seeded])
	if s.Error != "" {
		b.null("hr")
		b.str("error", s.Error)
	} else {
		b.str("hr", s.HR.String())
		b.str("hr_name", s.HR.Name())
	}
	b.num("frames", int64(s.Made))
	b.num("omitted", int64(s.Made-len(s.Calls)))
	b.str("why", s.Why)
}

// snapshotText writes calls for eyes.
type snapshotText struct {
	page
	calls int
}

func (p *snapshotText) Begin(h *Head) error {
	p.title(h)
	return p.flush()
}

func (p *snapshotText) End(t *stacks.Summary) error {
	if p.calls == 0 {
		p.line(plain, "")
		p.line(yellow, "no calls: the runtime knows no thread of the dump")
	}
	p.tail(t)
	return p.flush()
}

func (p *snapshotText) Call(s *Snapshot) error {
	p.calls++
	p.line(plain, "")
	p.heading(&s.Thread)
	c := columns{digits: len(strconv.Itoa(max(len(s.Calls)-1, 0))), module: 1}
	for i := range s.Calls {
		c.module = max(c.module, min(length(s.Calls[i].Name.Module), maxModule))
	}
	for i := range s.Calls {
		p.callback(&s.Calls[i], i, c)
	}
	if more := s.Made - len(s.Calls); more > 0 {
		p.line(dim, fmt.Sprintf("  %*s  ... %s, not shown", c.digits, "", plural(more, "more callback", "more callbacks")))
	}
	p.answer(s, c)
	return p.flush()
}

// callback writes the i-th callback.
func (p *snapshotText) callback(call *SnapshotCall, i int, c columns) {
	name, color := call.Name.Function, plain
	if name == "" {
		name = "-"
	}
	if call.Function == 0 {
		name, color = "[native frames, the youngest returning to] "+name, dim
	}
	head := fmt.Sprintf("  %*d  %#016x  ", c.digits, i, uint64(call.IP))
	if p.style.Verbose {
		head += fmt.Sprintf("%#016x  %#016x  ", uint64(call.SP), uint64(call.Function))
	}
	head += pad(cut(clean(call.Name.Module), c.module), c.module) + "  "
	p.line(color, head+p.fit(name, string(call.Name.AppendSuffix(nil)), length(head)))
}

// answer writes what the call returned, or why it could not be made.
func (p *snapshotText) answer(s *Snapshot, c columns) {
	if s.Error != "" {
		p.line(yellow, "  "+s.Error)
		return
	}
	seed := "no seed"
	if s.Seeded {
		seed = "with a seed"
	}
	last := fmt.Sprintf("%v %s after %s (%v, %s)", s.HR, s.HR.Name(), plural(s.Made, "callback", "callbacks"), s.Mode, seed)
	if s.Why != "" {
		last += ": " + s.Why
	}
	color := dim
	if s.HR != profiler.S_OK {
		color = yellow
	}
	p.line(color, "  "+strings.Repeat(" ", c.digits)+"  "+clean(last))
}
