package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/managed/stacks"
)

// An Info is what a dump holds.
type Info struct {
	Head    *Head
	Threads []stacks.Thread // without their stacks
	Tail    *stacks.Summary
}

func (i *Info) forms() []form { return textAndJSON(i.text, i.json) }

func (i *Info) json(b *jsonBuffer) {
	b.document(i.Head, i.Tail, func() { objects(b, "threads", line1, i.Threads, b.thread) })
}

func (i *Info) text(b *page) {
	b.title(i.Head)
	if c := i.Head.Dump.Crash; c != nil {
		b.line(yellow, crashLine(c))
	}
	b.line(plain, "")
	b.line(bold, strconv.Itoa(len(i.Threads))+" threads")
	for n := range i.Threads {
		b.line(plain, "  "+clean(i.Threads[n].String()))
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
		if b.style.Verbose && m.Path != "" {
			b.line(dim, "  "+strings.Repeat(" ", 25)+clean(m.Path))
		}
	}
	b.tail(i.Tail)
}
