package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
)

// A Compiled is a method of the table, and its name for eyes.
type Compiled struct {
	loader.Method
	Function string
}

// A MethodTable is what the runtimes in a process compiled.
type MethodTable struct {
	Head    *Head
	List    []Compiled // by address
	Omitted int        // methods that [Builder.Limit] left out at the end
	Unnamed int        // methods without a name, those left out too
	Tail    *Tail
}

// Whole reports whether there are methods, all with a name, and nothing is
// known to be missing. A file of another build that was passed over takes
// nothing away but names.
func (t *MethodTable) Whole() bool {
	other := func(w Warning) bool { return w.Code != "image_differs" }
	return len(t.List) > 0 && t.Unnamed == 0 && !slices.ContainsFunc(t.Tail.Warnings, other)
}

// Methods names the methods of the process's table. A table made from a
// runtime's heaps has identities only. An empty table comes with a warning that
// says why.
func (b *Builder) Methods() *MethodTable {
	all := b.s.Process.Methods.All()
	t := &MethodTable{Head: b.Head(), List: make([]Compiled, len(all))}
	for i, m := range all {
		c := &t.List[i]
		*c = Compiled{m, m.Name}
		code, rt := b.s.Lookup(m.Code.Lo)
		switch {
		case m.Name != "" || rt == nil:
		case m.ID != 0:
			d := b.describe(rt, &clr.Code{Method: arch.Addr(m.ID)})
			c.Name, c.Function = d.m.Name, d.function
		case code.Kind == clr.Stub:
			c.Function = code.Stub.String()
		}
		if c.Function == "" && m.Kind != "stub" { // a block of stubs has none
			t.Unnamed++
		}
	}
	if n := len(all) - b.Limit; b.Limit > 0 && n > 0 {
		t.List, t.Omitted = t.List[:b.Limit], n
	}
	t.Tail = b.Tail()
	if len(all) == 0 {
		w := Warning{Code: "no_methods", Text: "no methods: no code that the runtime compiled is in the dump", Offset: -1}
		if len(b.s.Runtimes) == 0 {
			w.Text = "no methods: there is no runtime in this process that could have compiled any"
			if len(b.s.Warnings) > 0 {
				w.Text = "no methods: the runtime in this process cannot be read"
			}
		}
		t.Tail.Warnings = append(t.Tail.Warnings, w)
	}
	return t
}

// methodForms lists the forms that a table of methods can be written in, each
// by what stands before, for and after the methods.
var methodForms = []struct {
	name   string
	before func(b *methodBuffer, t *MethodTable)
	method func(b *methodBuffer, i int, m *Compiled)
	after  func(b *methodBuffer, t *MethodTable)
}{
	{"text", nil, methodText, methodTextEnd},
	{"json", methodJSONBegin, methodJSON, methodJSONEnd},
	{"perfmap", nil, methodPerf, nil},
}

// A methodBuffer is a table under way, as text or as JSON.
type methodBuffer struct {
	page
	jsonBuffer
}

func (b *methodBuffer) flush(w io.Writer) error {
	for _, p := range []*[]byte{&b.page.buf, &b.jsonBuffer.buf} {
		if _, err := w.Write(*p); err != nil {
			return err
		}
		*p = (*p)[:0]
	}
	return nil
}

// WriteMethods writes a table of methods as text, json or perfmap. A perf map
// has no place for warnings.
func WriteMethods(w io.Writer, format string, style Style, t *MethodTable) error {
	for _, form := range methodForms {
		if form.name != format {
			continue
		}
		b := &methodBuffer{page: page{style: style}}
		if form.before != nil {
			form.before(b, t)
		}
		for i := range t.List {
			form.method(b, i, &t.List[i])
			if len(b.page.buf)+len(b.jsonBuffer.buf) > chunk {
				if err := b.flush(w); err != nil {
					return err
				}
			}
		}
		if form.after != nil {
			form.after(b, t)
		}
		return b.flush(w)
	}
	return fmt.Errorf("no format %q; there are text, json, perfmap", format)
}

func methodText(b *methodBuffer, _ int, m *Compiled) {
	head := fmt.Sprintf("%#016x  %7d  %-7s  %-7s  ", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), m.Kind, m.Source)
	if b.style.Verbose {
		head += fmt.Sprintf("%#016x  ", m.ID)
	}
	b.paint(dim, head)
	name := m.Function
	if name == "" {
		name = "?"
	}
	b.line(green, b.fit(name, "", length(head)))
}

func methodTextEnd(b *methodBuffer, t *MethodTable) {
	if t.Omitted > 0 {
		b.line(dim, "... "+plural(t.Omitted, "more method", "more methods")+", not shown")
	}
	b.tail(t.Tail)
}

func methodJSONBegin(b *methodBuffer, t *MethodTable) {
	b.head(t.Head)
	b.raw(",\n ")
	b.key("methods")
	b.raw("[")
}

func methodJSONEnd(b *methodBuffer, t *MethodTable) {
	b.raw("],\n ")
	b.num("omitted", int64(t.Omitted))
	b.raw(",\n ")
	b.warnings(t.Tail)
	b.raw("}\n")
}

func methodJSON(b *methodBuffer, i int, m *Compiled) {
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
func methodPerf(b *methodBuffer, _ int, m *Compiled) {
	name := clean(m.Function)
	if name == "" {
		name = fmt.Sprintf("[%s]", m.Kind)
	}
	b.page.buf = fmt.Appendf(b.page.buf, "%x %x %s\n", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), name)
}
