package report

import (
	"bytes"
	"io"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/stacks"
)

// schema is the version of the JSON's shape: fields may be added without a new
// one, and are never dropped or renamed.
const schema = 1

// A jsonOutput writes one JSON object with a line for each image, frame and
// warning, so that two runs can be compared with diff.
//
// It is written by hand for three reasons: threads stream out as they are
// walked, what is not known is null and never 0 or "", and a long stack costs
// no more memory than a short one.
type jsonOutput struct {
	b       jsonBuffer
	threads jsonList
	// places are what place wrote: the same few hundred bytes for most of the
	// frames of a deep stack.
	places map[*stacks.Place][]byte
}

// maxPlaces bounds the places that are remembered, for the stacks of a forged
// dump could all stand at different ones.
const maxPlaces = 1 << 16

func newJSON(w io.Writer, _ Style) Output {
	o := &jsonOutput{b: jsonBuffer{sink{w: w}}, places: map[*stacks.Place][]byte{}}
	o.threads = jsonList{b: &o.b, front: line1}
	return o
}

func (o *jsonOutput) Begin(h *Head) error {
	o.b.head(h)
	o.b.raw(",\n ")
	o.threads = o.b.list("threads", line1)
	return o.b.flush()
}

func (o *jsonOutput) Thread(t *stacks.Thread) error {
	b := &o.b
	o.threads.open()
	b.thread(t)
	b.frames(line2, t.Frames, o.frame)
	b.raw(",\n   ")
	b.num("omitted", int64(t.Omitted.Frames))
	b.num("omitted_gaps", int64(t.Omitted.Gaps))
	b.object("stop", func() {
		b.str("reason", t.Stop.Reason)
		b.addrIf("pc", uint64(t.Stop.PC), len(t.Frames) > 0)
		b.addr("at", uint64(t.Stop.At))
		b.boolean("complete", t.Stop.Complete)
		b.str("text", t.Stop.Text)
	})
	o.threads.close()
	return b.flush()
}

// frames writes the frames of a stack, each below the calls that were inlined into
// it; write writes the fields of one.
func (b *jsonBuffer) frames(at front, frames []stacks.Frame, write func(*stacks.Frame)) {
	l := b.list("frames", at)
	for i := range frames {
		f := &frames[i]
		for _, call := range f.Inlined {
			l.open()
			write(&stacks.Frame{PC: f.PC, SP: f.SP, Place: call})
			l.close()
		}
		l.open()
		write(f)
		if !l.close() {
			break
		}
	}
	l.end()
}

// frame writes the fields of a frame.
func (o *jsonOutput) frame(f *stacks.Frame) {
	b := &o.b
	b.frame(f)
	if known, ok := o.places[f.Place]; ok {
		b.buf = append(b.buf, known...)
		return
	}
	begin := len(b.buf)
	b.place(f.Place)
	if len(o.places) >= maxPlaces {
		clear(o.places)
	}
	o.places[f.Place] = bytes.Clone(b.buf[begin:])
}

func (o *jsonOutput) End(t *stacks.Summary) error {
	o.threads.end()
	o.b.raw(",\n ")
	o.b.missing(t.Missing, true)
	o.b.raw(",\n ")
	o.b.warnings(t)
	o.b.raw("}\n")
	return o.b.flush()
}

// document writes the object of a result: what all begin with, the fields that
// lists writes, and the warnings.
func (b *jsonBuffer) document(h *Head, t *stacks.Summary, lists func()) {
	b.head(h)
	b.raw(",\n ")
	lists()
	b.raw(",\n ")
	b.warnings(t)
	b.raw("}\n")
}

// head writes what all JSON of a dump begins with, the object left open.
func (b *jsonBuffer) head(h *Head) {
	b.raw("{")
	b.num("schema", schema)
	b.raw(",\n ")
	b.object("dump", func() { b.dump(&h.Dump) })
	if h.Cause != nil {
		b.raw(",\n ")
		b.cause(h.Cause())
	}
	b.raw(",\n ")
	objects(b, "runtimes", line1, h.Runtimes, func(r *stacks.Runtime) {
		b.str("kind", r.Kind)
		b.str("version", r.Version)
		b.str("image", r.Image)
		b.str("how", r.How)
		b.str("commit", r.Commit)
		b.texts("lacks", r.Lacks)
	})
	b.raw(",\n ")
	objects(b, "images", line1, h.Images(), func(m *stacks.Image) {
		b.str("name", m.Name)
		b.str("path", m.Path)
		b.str("id", m.ID)
		b.addr("base", uint64(m.Span.Lo))
		b.addr("end", uint64(m.Span.Hi))
		b.str("bytes", m.Bytes)
	})
}

func (b *jsonBuffer) dump(d *stacks.Dump) {
	b.str("path", d.Path)
	b.str("format", d.Format)
	b.str("os", d.OS)
	b.str("arch", d.Arch)
	b.numIf("pid", int64(d.PID), d.PID != 0)
	c := d.Crash
	if c == nil {
		b.null("crash")
		return
	}
	b.object("crash", func() {
		b.num("tid", int64(c.TID))
		b.num("signal", int64(c.Signal))
		b.num("code", int64(c.Code))
		b.addrIf("address", uint64(c.Address), c.HasAddr)
	})
}

// thread writes the fields of a thread but for its stack.
func (b *jsonBuffer) thread(t *stacks.Thread) {
	b.num("tid", int64(t.TID))
	b.str("name", t.Name)
	b.numIf("managed_id", int64(t.ManagedID), t.ManagedID != 0)
	b.str("mode", string(t.Mode))
	b.str("role", string(t.Role))
	b.boolean("crashed", t.Crashed)
	b.exception("exception", t.Exception, map[arch.Addr]bool{})
}

// frame writes the fields of a frame in front of those of its place.
func (b *jsonBuffer) frame(f *stacks.Frame) {
	gap := f.Kind == stacks.Gap
	b.str("kind", string(f.Kind))
	b.addrIf("pc", uint64(f.PC.Addr), !gap)
	b.addr("sp", uint64(f.SP))
	b.boolean("exact", f.PC.Exact && !gap)
	b.str("by", f.By)
}

// place writes the fields of a frame that depend on its pc alone.
func (b *jsonBuffer) place(p *stacks.Place) {
	b.str("module", p.Module)
	b.str("function", p.Function)
	b.str("symbol", p.Symbol)
	b.numIf("offset", int64(p.Offset), p.Function != "" && p.Kind != stacks.Inline)
	b.str("file", p.File)
	b.numIf("line", int64(p.Line), p.Line > 0)
	if m := p.Method; m == nil {
		b.null("method")
	} else {
		b.object("method", func() {
			b.addr("id", uint64(m.ID))
			b.addr("token", uint64(m.Token))
			b.str("name", m.Name)
			b.numIf("il_offset", m.ILOffset, m.ILOffset >= 0)
			b.booleanIf("funclet", m.Funclet, m.FuncletKnown)
			b.str("code", m.Code)
			b.str("version", m.Version)
		})
	}
	why := ""
	if p.Why != nil {
		why = p.Why.Reason + ": " + p.Why.Text
	}
	b.str("why", why)
}

// missing writes the list of files that would tell more; counted says that stacks
// were looked at, so that it is known how much.
func (b *jsonBuffer) missing(list []stacks.Missing, counted bool) {
	objects(b, "missing", line1, list, func(m *stacks.Missing) {
		b.str("kind", string(m.Kind))
		b.str("name", m.Name)
		b.str("id", m.ID)
		b.numIf("stacks", int64(m.Stops), counted)
		b.numIf("names", int64(m.Unnamed+m.Unlined), counted)
	})
}

func (b *jsonBuffer) warnings(t *stacks.Summary) {
	objects(b, "warnings", line1, warnings(t), func(w *stacks.Warning) { b.warning(w) })
}

func (b *jsonBuffer) warning(w *stacks.Warning) {
	b.str("code", w.Code)
	b.str("text", w.Text)
	b.numIf("offset", w.Offset, w.Offset >= 0)
}
