package report

import (
	"fmt"
	"io"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
)

// A Compiled is a method of the table, and its name for eyes.
type Compiled struct {
	loader.Method
	Function string
}

// Methods names the methods of the process's table. A table made from a
// runtime's heaps has identities only.
func (b *Builder) Methods() []Compiled {
	all := b.s.Process.Methods.All()
	out := make([]Compiled, len(all))
	for i, m := range all {
		out[i] = Compiled{m, m.Name}
		code, rt := b.s.Lookup(m.Code.Lo)
		switch {
		case m.Name != "" || rt == nil:
		case m.ID != 0:
			d := b.describe(rt, &clr.Code{Method: arch.Addr(m.ID)})
			out[i].Name, out[i].Function = d.m.Name, d.function
		case code.Kind == clr.Stub:
			out[i].Function = code.Stub.String()
		}
	}
	return out
}

// methodForms lists the forms that a table of methods can be written in, each
// by what stands before, for and after the methods.
var methodForms = []struct {
	name         string
	before, last string
	method       func(b *jsonBuffer, i int, m *Compiled)
}{
	{"text", "", "", methodText},
	{"json", "{\"schema\": 1,\n \"methods\": [", "]}\n", methodJSON},
	{"perfmap", "", "", methodPerf},
}

// WriteMethods writes a table of methods as text, json or perfmap.
func WriteMethods(w io.Writer, format string, methods []Compiled) error {
	for _, form := range methodForms {
		if form.name != format {
			continue
		}
		b := jsonBuffer{buf: []byte(form.before)}
		for i := range methods {
			form.method(&b, i, &methods[i])
			if len(b.buf) > chunk {
				if _, err := w.Write(b.buf); err != nil {
					return err
				}
				b.buf = b.buf[:0]
			}
		}
		b.raw(form.last)
		_, err := w.Write(b.buf)
		return err
	}
	return fmt.Errorf("no format %q; there are text, json, perfmap", format)
}

func methodText(b *jsonBuffer, _ int, m *Compiled) {
	name := "?"
	if m.Function != "" {
		name = clean(m.Function)
	}
	b.buf = fmt.Appendf(b.buf, "%#016x  %7d  %-7s  %-7s  %s\n", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), m.Kind, m.Source, name)
}

func methodJSON(b *jsonBuffer, i int, m *Compiled) {
	// A comma is written here, not by item: the buffer may have been flushed.
	if i > 0 {
		b.raw(",")
	}
	b.raw("\n  {")
	b.addr("start", uint64(m.Code.Lo))
	b.addr("end", uint64(m.Code.Hi))
	b.addr("id", m.ID)
	b.str("name", m.Name)
	b.str("function", m.Function)
	b.str("kind", m.Kind)
	b.str("source", m.Source)
	b.raw("}")
}

// methodPerf writes a line of a perf map (tools/perf/Documentation/jit-interface.txt
// of Linux): numbers in hex without 0x.
func methodPerf(b *jsonBuffer, _ int, m *Compiled) {
	name := clean(m.Function)
	if name == "" {
		name = fmt.Sprintf("[%s]", m.Kind)
	}
	b.buf = fmt.Appendf(b.buf, "%x %x %s\n", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), name)
}
