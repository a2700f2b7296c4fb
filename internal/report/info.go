package report

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/managed/stacks"
)

// An Info is what a dump holds.
type Info struct {
	Head    *Head
	Threads []stacks.Thread // without their stacks
	Missing []stacks.Missing
	Tail    *stacks.Summary
}

func (i *Info) forms() []form { return textAndJSON(i.text, i.json) }

func (i *Info) json(b *jsonBuffer) {
	b.document(i.Head, i.Tail, func() {
		objects(b, "threads", line1, i.Threads, b.thread)
		b.raw(",\n ")
		b.missing(i.Missing, false)
	})
}

func (i *Info) text(b *page) {
	b.title(i.Head)
	b.cause(i.Head)
	for n := range i.Head.Dump.Runtimes {
		b.line(plain, runtimeLine(&i.Head.Dump.Runtimes[n]))
	}
	b.line(plain, "")
	b.line(bold, plural(len(i.Threads), "thread", "threads"))
	for n := range i.Threads {
		b.line(plain, "  "+clean(i.Threads[n].String()))
	}
	images := i.Head.Images()
	b.line(plain, "")
	b.line(bold, plural(len(images), "image, and where its bytes come from", "images, and where their bytes come from"))
	width := 0
	for n := range images {
		width = max(width, length(images[n].Name))
	}
	width = min(width, maxModule)
	for n := range images {
		m := &images[n]
		color := plain
		if m.Bytes == "none" {
			color = yellow
		}
		line := fmt.Sprintf("  %#016x  %-5s %s  %s", uint64(m.Span.Lo), m.Bytes, pad(cut(m.Name, width), width), m.ID)
		b.line(color, strings.TrimRight(line, " "))
		if b.style.Verbose && m.Path != "" {
			b.line(dim, "  "+strings.Repeat(" ", 25)+clean(m.Path))
		}
	}
	i.pdbs(b)
	b.tail(i.Tail)
}

// pdbs tells how many PDBs were not found, and with -v which.
func (i *Info) pdbs(b *page) {
	n := 0
	for k := range i.Missing {
		if i.Missing[k].Kind == stacks.MissingPDB {
			n++
		}
	}
	if n == 0 {
		return
	}
	b.line(plain, "")
	b.line(bold, plural(n, "PDB was not found; lines of source would be in it", "PDBs were not found; lines of source would be in them"))
	for k := range i.Missing {
		if m := &i.Missing[k]; b.style.Verbose && m.Kind == stacks.MissingPDB {
			b.line(plain, "  "+clean(m.ID)+"  "+clean(m.Name))
		}
	}
}

// runtimeLine says how a runtime was read, and what it lacks.
func runtimeLine(r *stacks.Runtime) string {
	s := runtimeName(r) + ", commit "
	if r.Commit == "" {
		s += "unknown"
	} else {
		s += clean(r.Commit)
	}
	if r.How != "" {
		how := runtimeWays[r.How]
		if how == "" {
			how = clean(r.How)
		}
		s += ", read by " + how
	}
	if len(r.Lacks) > 0 {
		s += "; it lacks " + clean(strings.Join(r.Lacks, ", "))
	}
	return s
}

// runtimeWays are the ways to know a runtime's layouts, for eyes.
var runtimeWays = map[string]string{
	"descriptor":           "its own descriptor",
	"table":                "what is known of its build or release",
	"descriptor and table": "its own descriptor and what is known of its release",
}
