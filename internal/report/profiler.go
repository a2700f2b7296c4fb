package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/unwind"
)

// A ProfilerView is a thread as a profiler sees it.
type ProfilerView struct {
	Thread Thread // its frames are the callbacks; Omitted counts frames of runs too
	Runs   map[int][]Frame
	HR     profiler.HRESULT
	Why    string
}

// kindRun is the kind of a callback for a run of native frames.
const kindRun = "run"

// ProfilerView describes what a profiler sees of t.
func (b *Builder) ProfilerView(t *loader.Thread, view []profiler.ViewFrame, hr profiler.HRESULT, why string) *ProfilerView {
	v := &ProfilerView{Thread: b.Thread(t), Runs: map[int][]Frame{}, HR: hr, Why: why}
	d := b.describer()
	left := b.Limit // frames that may be shown; a run is as many as are in it
	if left == 0 {
		left = math.MaxInt
	}
	for i := range view {
		f := d.frame(&view[i].Frame)
		run := view[i].Frame.Kind != managed.Managed
		if left == 0 {
			v.Thread.Omitted.Frames += 1
			if run {
				v.Thread.Omitted.Frames += len(view[i].Run) - 1
			}
			continue
		}
		if !run {
			left--
		} else {
			place := *f.Place
			place.Kind = kindRun
			f.Place = &place
			for k := range view[i].Run {
				if left == 0 {
					v.Thread.Omitted.Frames++
					continue
				}
				left--
				v.Runs[i] = append(v.Runs[i], d.frame(&view[i].Run[k]))
			}
		}
		f.By = ""
		v.Thread.Frames = append(v.Thread.Frames, f)
	}
	d.end(&v.Thread, unwind.Stop{Reason: unwind.EndOfStack})
	v.Thread.Stop = Stop{Reason: strings.ToLower(hr.Name()), Complete: hr == profiler.S_OK, Text: why}
	return v
}

// WriteProfilerViews writes views in one of the forms text and json.
func WriteProfilerViews(w io.Writer, format string, style Style, h *Head, views []*ProfilerView, t *Tail) error {
	var out []byte
	switch format {
	case "json":
		var b jsonBuffer
		b.head(h)
		b.raw(",\n ")
		b.key("threads")
		b.raw("[")
		for i, v := range views {
			b.item(i)
			b.view(v)
			b.raw("}")
		}
		b.raw("],\n ")
		b.warnings(t)
		b.raw("}\n")
		out = b.buf
	case "text":
		p := page{style: style}
		p.title(h)
		for _, v := range views {
			p.view(v)
		}
		if len(views) == 0 {
			p.line(plain, "")
			p.line(yellow, "no views: the runtime knows no thread of the dump")
		}
		p.tail(t)
		out = p.buf
	default:
		return errors.New("a profiler's view is written as text or json")
	}
	_, err := w.Write(out)
	return err
}

func (b *jsonBuffer) view(v *ProfilerView) {
	b.thread(&v.Thread)
	b.str("hr", v.HR.String())
	b.str("hr_name", v.HR.Name())
	b.key("frames")
	b.raw("[")
	for i := range v.Thread.Frames {
		if i > 0 {
			b.raw(",")
		}
		b.raw("\n    {")
		b.frame(&v.Thread.Frames[i])
		if run, ok := v.Runs[i]; ok {
			b.key("frames")
			b.raw("[")
			for k := range run {
				if k > 0 {
					b.raw(",")
				}
				b.raw("\n      {")
				b.frame(&run[k])
				b.raw("}")
			}
			b.raw("]")
		}
		b.raw("}")
	}
	b.raw("],\n   ")
	b.num("omitted", int64(v.Thread.Omitted.Frames))
	b.key("stop")
	b.raw("{")
	b.str("reason", v.Thread.Stop.Reason)
	b.boolean("complete", v.Thread.Stop.Complete)
	b.str("text", v.Thread.Stop.Text)
	b.raw("}")
}

// addresses tells where a frame is: its pc, and with -v its stack pointer.
func (p *page) addresses(f *Frame) string {
	s := fmt.Sprintf("%#016x  ", uint64(f.PC.Addr))
	if p.style.Verbose {
		s += fmt.Sprintf("%#016x  ", uint64(f.SP))
	}
	return s
}

func (p *page) view(v *ProfilerView) {
	p.line(plain, "")
	p.line(bold, "Thread "+v.Thread.heading())
	for i := range v.Thread.Frames {
		f := &v.Thread.Frames[i]
		if f.Kind != kindRun {
			head := "  " + p.addresses(f)
			p.line(green, head+p.fit(f.Function, f.suffix(), length(head)))
			continue
		}
		p.line(plain, "  native frames:")
		for k := range v.Runs[i] {
			n := &v.Runs[i][k]
			head := "    " + p.addresses(n) + clean(n.Module) + "  "
			p.line(dim, head+p.fit(n.Function, n.suffix(), length(head)))
		}
	}
	if v.Thread.Omitted.Frames > 0 {
		p.line(dim, "  ... "+v.Thread.Omitted.sentence())
	}
	color := dim
	if v.HR != profiler.S_OK {
		color = yellow
	}
	p.line(color, "  "+clean(strings.Join(slices.DeleteFunc([]string{v.HR.String() + " " + v.HR.Name(), v.Why}, func(s string) bool { return s == "" }), ": ")))
}
