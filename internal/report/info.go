package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// An Info is what a dump holds.
type Info struct {
	Head    *Head
	Threads []Thread // without their stacks
	Tail    *Tail
}

// WriteInfo writes what a dump holds, in one of the forms text and json.
func WriteInfo(w io.Writer, format string, style Style, i *Info) error {
	switch format {
	case "json":
		return i.json(w)
	case "text":
		return i.text(w, style)
	}
	return fmt.Errorf("no format %q; there are text, json", format)
}

func (i *Info) json(w io.Writer) error {
	var b jsonBuffer
	b.head(i.Head)
	b.raw(",\n ")
	b.key("threads")
	b.raw("[")
	for n := range i.Threads {
		b.item(n)
		b.thread(&i.Threads[n])
		b.raw("}")
	}
	b.raw("],\n ")
	b.warnings(i.Tail)
	b.raw("}\n")
	_, err := w.Write(b.buf)
	return err
}

func (i *Info) text(w io.Writer, style Style) error {
	var b page
	b.style = style
	b.title(i.Head)
	if c := i.Head.Dump.Crash; c != nil {
		b.line(yellow, c.String())
	}
	b.line(plain, "")
	b.line(bold, strconv.Itoa(len(i.Threads))+" threads")
	for n := range i.Threads {
		b.line(plain, "  "+i.Threads[n].heading())
	}
	images := i.Head.Images()
	b.line(plain, "")
	b.line(bold, strconv.Itoa(len(images))+" images, and where their bytes come from")
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
		b.line(color, fmt.Sprintf("  %#016x  %-5s %s  %s", uint64(m.Span.Lo), m.Bytes, pad(cut(m.Name, width), width), m.ID))
		if style.Verbose && m.Path != "" {
			b.line(dim, "  "+strings.Repeat(" ", 25)+clean(m.Path))
		}
	}
	b.tail(i.Tail)
	_, err := w.Write(b.buf)
	return err
}
