package report

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

// Views are threads as a profiler sees them that is written to the documentation
// of DoStackSnapshot.
type Views struct {
	Head *Head
	List []View
	Tail *stacks.Summary
}

// A View is one thread as a profiler sees it.
type View struct {
	Thread    stacks.Thread // without its stack
	Callbacks []Callback
	Omitted   int // frames that were left out at the end, those of runs too
	HR        profiler.HRESULT
	Why       string // what decided HR; "" if nothing is to be said
}

// A Callback is one callback: for a method, or for a run of native frames.
type Callback struct {
	Frame stacks.Frame   // native: the callback is for a run, and Frame is the youngest of it
	Run   []stacks.Frame // the frames of the run, walked from the callback's registers
}

// kindRun is the kind of a callback for a run of native frames.
const kindRun stacks.Kind = "run"

func (v *Views) forms() []form { return textAndJSON(v.text, v.json) }

func (v *Views) json(b *jsonBuffer) {
	b.document(v.Head, v.Tail, func() {
		objects(b, "threads", line1, v.List, b.view)
		b.raw(",\n ")
		b.missing(v.Tail.Missing, true)
	})
}

func (b *jsonBuffer) view(v *View) {
	b.thread(&v.Thread)
	b.str("hr", v.HR.String())
	b.str("hr_name", v.HR.Name())
	objects(b, "frames", line2, v.Callbacks, func(c *Callback) {
		f, place := c.Frame, *c.Frame.Place
		if f.Place, f.By = &place, ""; f.Kind == stacks.Native { // the runtime does not say how it found a frame
			f.Kind = kindRun
		}
		b.frame(&f)
		b.place(&place)
		if len(c.Run) > 0 {
			objects(b, "frames", line3, c.Run, func(f *stacks.Frame) {
				b.frame(f)
				b.place(f.Place)
			})
		}
	})
	b.raw(",\n   ")
	b.num("omitted", int64(v.Omitted))
	b.object("stop", func() {
		b.str("reason", strings.ToLower(v.HR.Name()))
		b.boolean("complete", v.HR == profiler.S_OK)
		b.str("text", v.Why)
	})
}

func (v *Views) text(p *page) {
	p.title(v.Head)
	for i := range v.List {
		p.view(&v.List[i])
	}
	if len(v.List) == 0 {
		p.line(plain, "")
		p.line(yellow, "no views: the runtime knows no thread of the dump")
	}
	p.tail(v.Tail)
}

func (p *page) view(v *View) {
	p.line(plain, "")
	p.heading(&v.Thread)
	for i := range v.Callbacks {
		c := &v.Callbacks[i]
		if c.Frame.Kind == stacks.Managed {
			head := "  " + p.addresses(&c.Frame)
			where := p.where(&c.Frame, length(head))
			p.line(green, head+p.fit(c.Frame.Function, suffix(&c.Frame), length(head)+length(where))+where)
			continue
		}
		p.line(plain, "  native frames:")
		for k := range c.Run {
			f := &c.Run[k]
			head := "    " + p.addresses(f) + clean(f.Module) + "  "
			p.line(dim, head+p.fit(f.Function, suffix(f), length(head)))
		}
	}
	if v.Omitted > 0 {
		p.line(dim, "  ... "+omitted(stacks.Omitted{Frames: v.Omitted}))
	}
	color := dim
	if v.HR != profiler.S_OK {
		color = yellow
	}
	last := v.HR.String() + " " + v.HR.Name()
	if v.Why != "" {
		last += ": " + v.Why
	}
	p.line(color, "  "+clean(last))
}

// addresses says where a frame is: its pc, and with -v its stack pointer.
func (p *page) addresses(f *stacks.Frame) string {
	s := fmt.Sprintf("%#016x  ", uint64(f.PC.Addr))
	if p.style.Verbose {
		s += fmt.Sprintf("%#016x  ", uint64(f.SP))
	}
	return s
}
