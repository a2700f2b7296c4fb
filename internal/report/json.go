package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"
)

// schema is the version of the JSON's shape: fields may be added without a new
// one, and are never dropped or renamed.
const schema = 1

// chunk is how many bytes are gathered before they are written. The stack of an
// overflow, with 260,000 frames, is 100 MB of JSON.
const chunk = 1 << 16

// A jsonOutput writes one JSON object with a line for each image, frame and
// warning, so that two runs can be compared with diff.
//
// It is written by hand for three reasons: threads stream out as they are
// walked, what is not known is null and never 0 or "", and a long stack costs
// no more memory than a short one.
type jsonOutput struct {
	w       io.Writer
	b       jsonBuffer
	threads int
	// places are what place wrote: the same few hundred bytes for most of the
	// frames of a deep stack.
	places map[*Place][]byte
}

func newJSON(w io.Writer, _ Style) Output {
	return &jsonOutput{w: w, places: map[*Place][]byte{}}
}

func (o *jsonOutput) flush() error {
	_, err := o.w.Write(o.b.buf)
	o.b.buf = o.b.buf[:0]
	return err
}

func (o *jsonOutput) Begin(h *Head) error {
	o.b.head(h)
	o.b.raw(",\n \"threads\": [")
	return o.flush()
}

func (o *jsonOutput) Thread(t *Thread) error {
	b := &o.b
	if o.threads++; o.threads > 1 {
		b.raw(",")
	}
	b.raw("\n  {")
	b.thread(t)
	b.key("frames")
	b.raw("[")
	for i := range t.Frames {
		if i > 0 {
			b.raw(",")
		}
		b.raw("\n    {")
		f := &t.Frames[i]
		b.frame(f)
		if known, ok := o.places[f.Place]; ok {
			b.buf = append(b.buf, known...)
		} else {
			begin := len(b.buf)
			b.place(f.Place)
			o.places[f.Place] = bytes.Clone(b.buf[begin:])
		}
		b.raw("}")
		if len(b.buf) > chunk {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	b.raw("],\n   ")
	b.num("omitted", int64(t.Omitted.Frames))
	b.num("omitted_gaps", int64(t.Omitted.Gaps))
	b.key("stop")
	b.raw("{")
	b.str("reason", t.Stop.Reason)
	b.addrIf("pc", uint64(t.Stop.PC), len(t.Frames) > 0)
	b.addr("at", uint64(t.Stop.At))
	b.boolean("complete", t.Stop.Complete)
	b.str("text", t.Stop.Text)
	b.raw("}}")
	return o.flush()
}

func (o *jsonOutput) End(t *Tail) error {
	o.b.raw("],\n ")
	o.b.warnings(t)
	o.b.raw("}\n")
	return o.flush()
}

// head writes what all JSON of a dump begins with, the object left open.
func (b *jsonBuffer) head(h *Head) {
	b.raw("{")
	b.num("schema", schema)
	b.raw(",\n ")
	b.key("dump")
	b.raw("{")
	b.str("path", h.Dump.Path)
	b.str("format", h.Dump.Format)
	b.str("os", h.Dump.OS)
	b.str("arch", h.Dump.Arch)
	b.numIf("pid", int64(h.Dump.PID), h.Dump.PID != 0)
	b.key("crash")
	if c := h.Dump.Crash; c == nil {
		b.raw("null")
	} else {
		b.raw("{")
		b.num("tid", int64(c.TID))
		b.num("signal", int64(c.Signal))
		b.num("code", int64(c.Code))
		b.addrIf("address", uint64(c.Address), c.HasAddr)
		b.raw("}")
	}
	b.raw("},\n ")
	b.key("runtimes")
	b.raw("[")
	for i := range h.Runtimes {
		r := &h.Runtimes[i]
		b.item(i)
		b.str("kind", r.Kind)
		b.str("version", r.Version)
		b.str("image", r.Image)
		b.str("how", r.How)
		b.raw("}")
	}
	b.raw("],\n ")
	b.key("images")
	b.raw("[")
	for i, m := range h.Images() {
		b.item(i)
		b.str("name", m.Name)
		b.str("path", m.Path)
		b.str("id", m.ID)
		b.addr("base", uint64(m.Span.Lo))
		b.addr("end", uint64(m.Span.Hi))
		b.str("bytes", m.Bytes)
		b.raw("}")
	}
	b.raw("]")
}

// thread writes the fields of a thread but for its stack.
func (b *jsonBuffer) thread(t *Thread) {
	b.num("tid", int64(t.TID))
	b.str("name", t.Name)
	b.numIf("managed_id", int64(t.ManagedID), t.Managed)
	switch {
	case !t.Managed:
		b.str("mode", "")
	case t.Cooperative:
		b.str("mode", "cooperative")
	default:
		b.str("mode", "preemptive")
	}
	b.boolean("crashed", t.Crashed)
	b.key("exception")
	if e := t.Exception; e == nil {
		b.raw("null")
	} else {
		b.raw("{")
		b.str("type", e.Type)
		b.strIf("message", e.Message, e.HasMessage)
		b.addr("address", uint64(e.Address))
		b.raw("}")
	}
}

// frame writes the fields of a frame in front of those of its place.
func (b *jsonBuffer) frame(f *Frame) {
	gap := f.Kind == kindGap
	b.str("kind", f.Kind)
	b.addrIf("pc", uint64(f.PC.Addr), !gap)
	b.addr("sp", uint64(f.SP))
	b.boolean("exact", f.PC.Exact && !gap)
	b.str("by", f.By)
}

// place writes the fields of a frame that depend on its pc alone.
func (b *jsonBuffer) place(f *Place) {
	named := f.Function != ""
	b.str("module", f.Module)
	b.str("function", f.Function)
	b.str("symbol", f.Symbol)
	b.numIf("offset", int64(f.Offset), named)
	b.str("file", "")
	b.str("line", "")
	b.key("method")
	if m := f.Method; m == nil {
		b.raw("null")
	} else {
		b.raw("{")
		b.addr("id", uint64(m.ID))
		b.addr("token", uint64(m.Token))
		b.str("name", m.Name)
		b.numIf("il_offset", m.ILOffset, m.ILOffset >= 0)
		b.booleanIf("funclet", m.Funclet, m.FuncletKnown)
		b.str("code", m.Code)
		b.str("version", m.Version)
		b.raw("}")
	}
	b.str("why", f.Why)
}

func (b *jsonBuffer) warnings(t *Tail) {
	b.key("warnings")
	b.raw("[")
	n := 0
	for _, w := range t.All() {
		b.item(n)
		b.str("code", w.Code)
		b.str("text", w.Text)
		b.numIf("offset", w.Offset, w.Offset >= 0)
		b.raw("}")
		n++
	}
	b.raw("]")
}

// A jsonBuffer is JSON under way. Every method that takes a key writes one
// field; an empty string and the address 0 are null.
type jsonBuffer struct{ buf []byte }

func (b *jsonBuffer) raw(s string) { b.buf = append(b.buf, s...) }

// item begins the i-th object of a list, on a line of its own.
func (b *jsonBuffer) item(i int) {
	if i > 0 {
		b.raw(",")
	}
	b.raw("\n  {")
}

// key writes a key, with a comma in front unless it is its object's first.
func (b *jsonBuffer) key(k string) {
	end := len(b.buf) - 1
	for end >= 0 && (b.buf[end] == ' ' || b.buf[end] == '\n') {
		end--
	}
	if end >= 0 && b.buf[end] != '{' && b.buf[end] != ',' {
		b.raw(", ")
	}
	b.raw(`"`)
	b.raw(k)
	b.raw(`": `)
}

func (b *jsonBuffer) str(k, v string) { b.strIf(k, v, v != "") }

func (b *jsonBuffer) strIf(k, v string, known bool) {
	b.key(k)
	if !known {
		b.raw("null")
		return
	}
	b.text(v)
}

func (b *jsonBuffer) boolean(k string, v bool) { b.booleanIf(k, v, true) }

func (b *jsonBuffer) booleanIf(k string, v, known bool) {
	b.key(k)
	if !known {
		b.raw("null")
		return
	}
	b.buf = strconv.AppendBool(b.buf, v)
}

func (b *jsonBuffer) num(k string, v int64) { b.numIf(k, v, true) }

func (b *jsonBuffer) numIf(k string, v int64, known bool) {
	b.key(k)
	if !known {
		b.raw("null")
		return
	}
	b.buf = strconv.AppendInt(b.buf, v, 10)
}

func (b *jsonBuffer) addr(k string, v uint64) { b.addrIf(k, v, v != 0) }

// addrIf writes a number as text: 64 bits do not survive JavaScript.
func (b *jsonBuffer) addrIf(k string, v uint64, known bool) {
	b.key(k)
	if !known {
		b.raw("null")
		return
	}
	b.raw(`"0x`)
	b.buf = strconv.AppendUint(b.buf, v, 16)
	b.raw(`"`)
}

// text writes a string. Most need no escapes.
func (b *jsonBuffer) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false) // List<int>, not List\u003cint\u003e
			e.Encode(s)            // of a string, to memory: cannot fail
			b.buf = append(b.buf, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
			return
		}
	}
	b.raw(`"`)
	b.raw(s)
	b.raw(`"`)
}
