package report

import (
	"fmt"
	"io"

	"github.com/seamwalk/seam/managed/stacks"
)

// A MethodTable is what the runtimes in a process compiled.
type MethodTable struct {
	Head    *Head
	List    []stacks.Compiled // by address
	Omitted int               // methods that were left out at the end
	Tail    *stacks.Summary
}

func (t *MethodTable) forms() []form {
	return append(textAndJSON(t.text, t.json), form{"perfmap", t.perfmap})
}

func (t *MethodTable) text(p *page) {
	for i := range t.List {
		m := &t.List[i]
		head := fmt.Sprintf("%#016x  %7d  %-7s  %-7s  ", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), m.Kind, m.Source)
		if p.style.Verbose {
			head += fmt.Sprintf("%#016x  ", m.ID)
		}
		p.paint(dim, head)
		name := m.Function
		if name == "" {
			name = "?"
		}
		p.line(green, p.fit(name, "", length(head)))
		if !p.more() {
			return
		}
	}
	if t.Omitted > 0 {
		p.line(dim, "... "+plural(t.Omitted, "more method", "more methods")+", not shown")
	}
	p.tail(t.Tail)
}

func (t *MethodTable) json(b *jsonBuffer) {
	b.document(t.Head, t.Tail, func() {
		objects(b, "methods", line1, t.List, func(m *stacks.Compiled) {
			b.addr("start", uint64(m.Code.Lo))
			b.addr("end", uint64(m.Code.Hi))
			b.addr("id", m.ID)
			b.str("name", m.Name)
			b.str("function", m.Function)
			b.str("kind", m.Kind)
			b.str("source", m.Source)
		})
		b.raw(",\n ")
		b.num("omitted", int64(t.Omitted))
	})
}

// perfmap writes a perf map, a line for each method (tools/perf/Documentation/
// jit-interface.txt of Linux): numbers in hex without 0x. It has no place for
// warnings.
func (t *MethodTable) perfmap(w io.Writer, _ Style) error {
	s := sink{w: w}
	for i := range t.List {
		m := &t.List[i]
		name := clean(m.Function)
		if name == "" {
			name = fmt.Sprintf("[%s]", m.Kind)
		}
		s.buf = fmt.Appendf(s.buf, "%x %x %s\n", uint64(m.Code.Lo), uint64(m.Code.Hi-m.Code.Lo), name)
		if !s.more() {
			break
		}
	}
	return s.flush()
}
