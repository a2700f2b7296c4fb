package report

import (
	"fmt"

	"github.com/seamwalk/seam/managed/stacks"
)

// cause writes what ended the process.
func (b *jsonBuffer) cause(c *stacks.Cause) {
	if c == nil {
		b.null("crash")
		return
	}
	b.object("crash", func() {
		b.num("tid", int64(c.TID))
		b.str("text", c.Text)
		if g := c.Signal; g == nil {
			b.null("signal")
		} else {
			b.object("signal", func() {
				b.str("name", g.Name)
				b.str("code", g.Code)
				b.addrIf("address", uint64(g.Address), g.HasAddr)
			})
		}
		code := ""
		if c.Code != 0 {
			code = fmt.Sprintf("0x%08x", c.Code)
		}
		b.str("code", code)
	})
}

// cause says in a line what ended the process.
func (p *page) cause(h *Head) {
	if h.Cause == nil {
		return
	}
	if c := h.Cause(); c != nil {
		p.line(yellow, clean(c.String()))
	}
}
