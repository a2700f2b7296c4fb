package report

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/stacks"
)

// exception writes the field k, an exception and those that it leads to. Of one
// that written has already, its inner ones and its stack trace are not written
// again: an AggregateException has its inner one in its list too.
func (b *jsonBuffer) exception(k string, e *stacks.Exception, written map[arch.Addr]bool) {
	if e == nil {
		b.null(k)
		return
	}
	b.object(k, func() { b.exceptionFields(e, written) })
}

func (b *jsonBuffer) exceptionFields(e *stacks.Exception, written map[arch.Addr]bool) {
	b.str("type", e.Type)
	b.strIf("message", e.Message, e.HasMessage)
	b.addr("address", uint64(e.Address))
	hresult := ""
	if e.HasHResult {
		hresult = fmt.Sprintf("0x%08x", e.HResult)
	}
	b.str("hresult", hresult)
	again := e.Address != 0 && written[e.Address]
	written[e.Address] = true
	if again {
		b.null("inner")
		b.null("all")
		b.null("frames")
		values(b, "lacks", nil, b.text)
		return
	}
	b.exception("inner", e.Inner, written)
	b.exceptionList(e, written)
	b.exceptionFrames(e)
	values(b, "lacks", e.Lacks, b.text)
}

// exceptionList writes the exceptions that e stands for, null where it is none that
// stands for others.
func (b *jsonBuffer) exceptionList(e *stacks.Exception, written map[arch.Addr]bool) {
	if len(e.All) == 0 {
		b.null("all")
		return
	}
	objects(b, "all", inline, e.All, func(one **stacks.Exception) { b.exceptionFields(*one, written) })
}

// exceptionFrames writes the stack trace that e has.
func (b *jsonBuffer) exceptionFrames(e *stacks.Exception) {
	if !e.HasFrames() {
		b.null("frames")
		return
	}
	n, rethrown := 0, e.Rethrown
	objects(b, "frames", line3, e.Frames, func(f *stacks.Frame) {
		at := *f
		b.str("kind", string(at.Kind))
		b.addr("pc", uint64(at.PC.Addr))
		b.addr("sp", uint64(at.SP))
		b.boolean("exact", at.PC.Exact)
		b.str("by", at.By)
		b.place(at.Place)
		last := len(rethrown) > 0 && rethrown[0] == n
		if last {
			rethrown = rethrown[1:]
		}
		b.boolean("rethrown", last)
		n++
	})
}

// Bounds of an exception in text: how many frames of one stack trace are shown, and
// how many exceptions.
const (
	maxTraceLines = 30
	maxInner      = 30
)

// exception writes below a thread's heading what led to its exception, and the
// stack traces that are not on the thread's own stack.
func (p *page) exception(t *stacks.Thread) {
	if t.Exception == nil {
		return
	}
	w := exceptionText{p: p, shown: map[*stacks.Exception]bool{}}
	w.shown[t.Exception] = true
	if !stands(t, t.Exception) {
		w.trace(t.Exception, 1)
	}
	w.inner(t.Exception, 1)
}

// stands reports whether the frames of e's stack trace are all on t's stack, which
// is then shown without them.
func stands(t *stacks.Thread, e *stacks.Exception) bool {
	on := make(map[arch.Addr]*stacks.Place, len(t.Frames))
	for i := range t.Frames {
		on[t.Frames[i].SP] = t.Frames[i].Place
	}
	for i := range e.Frames {
		f := &e.Frames[i]
		if p := on[f.SP]; p == nil || p.Method == nil || f.Method == nil || p.Method.ID != f.Method.ID {
			return false
		}
	}
	return true
}

// exceptionText is an exception in text under way.
type exceptionText struct {
	p     *page
	shown map[*stacks.Exception]bool
}

// inner writes the exceptions that e leads to.
func (w *exceptionText) inner(e *stacks.Exception, depth int) {
	list := e.All
	if len(list) == 0 && e.Inner != nil {
		list = []*stacks.Exception{e.Inner}
	}
	for _, one := range list {
		if w.shown[one] {
			continue
		}
		if len(w.shown) > maxInner {
			w.line(dim, depth, "... more exceptions, not shown")
			return
		}
		w.shown[one] = true
		w.line(yellow, depth, "because of "+clean(one.String()))
		w.trace(one, depth+1)
		w.inner(one, depth+1)
	}
}

// trace writes the stack trace of e.
func (w *exceptionText) trace(e *stacks.Exception, depth int) {
	rethrown := e.Rethrown
	for i := range e.Frames {
		if i == maxTraceLines {
			w.line(dim, depth, fmt.Sprintf("... %s, not shown", plural(len(e.Frames)-i, "more frame", "more frames")))
			break
		}
		f := &e.Frames[i]
		head := strings.Repeat("  ", depth) + "at "
		w.p.line(plain, head+w.p.fit(f.Function, suffix(f), length(head)))
		if len(rethrown) > 0 && rethrown[0] == i {
			rethrown = rethrown[1:]
			w.line(dim, depth, "--- thrown anew from here on")
		}
	}
	what := "the rest of its stack trace"
	if len(e.Frames) == 0 {
		what = "its stack trace"
	}
	for _, part := range e.Lacks {
		if part == "frames" {
			w.line(yellow, depth, what+" is missing from the dump")
		}
	}
}

func (w *exceptionText) line(c color, depth int, s string) {
	w.p.line(c, strings.Repeat("  ", depth)+s)
}
