package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/unwind"
)

// A ProfilerView is a thread as a profiler sees it.
type ProfilerView struct {
	Thread Thread // its frames are the callbacks
	Runs   map[int][]Frame
	HR     managed.HRESULT
	Why    string
}

// kindRun is the kind of a callback for a run of native frames.
const kindRun = "run"

// ProfilerView describes what a profiler sees of t.
func (b *Builder) ProfilerView(t *loader.Thread, view []managed.ViewFrame, hr managed.HRESULT, why string) *ProfilerView {
	v := &ProfilerView{Thread: b.Thread(t), Runs: map[int][]Frame{}, HR: hr, Why: why}
	d := b.describer()
	for i := range view {
		f := d.frame(&view[i].Frame)
		if view[i].Frame.Kind != managed.Managed {
			place := *f.Place
			place.Kind = kindRun
			f.Place = &place
			for k := range view[i].Run {
				v.Runs[i] = append(v.Runs[i], d.frame(&view[i].Run[k]))
			}
		}
		f.By = ""
		v.Thread.Frames = append(v.Thread.Frames, f)
	}
	d.end(&v.Thread, unwind.Stop{Reason: unwind.EndOfStack})
	v.Thread.Stop = Stop{Reason: strings.ToLower(hr.Name()), Complete: hr == managed.S_OK, Text: why}
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
	b.key("stop")
	b.raw("{")
	b.str("reason", v.Thread.Stop.Reason)
	b.boolean("complete", v.Thread.Stop.Complete)
	b.str("text", v.Thread.Stop.Text)
	b.raw("}")
}

func (p *page) view(v *ProfilerView) {
	p.line(plain, "")
	p.line(bold, "Thread "+v.Thread.heading())
	for i := range v.Thread.Frames {
		f := &v.Thread.Frames[i]
		if f.Kind != kindRun {
			p.line(green, fmt.Sprintf("  %#016x  %s%s", uint64(f.PC.Addr), clean(f.Function), f.suffix()))
			continue
		}
		p.line(plain, "  native frames:")
		for k := range v.Runs[i] {
			n := &v.Runs[i][k]
			p.line(dim, fmt.Sprintf("    %#016x  %s  %s%s", uint64(n.PC.Addr), clean(n.Module), clean(n.Function), n.suffix()))
		}
	}
	color := dim
	if v.HR != managed.S_OK {
		color = yellow
	}
	p.line(color, "  "+clean(strings.Join(slices.DeleteFunc([]string{v.HR.String() + " " + v.HR.Name(), v.Why}, func(s string) bool { return s == "" }), ": ")))
}
