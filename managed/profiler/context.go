package profiler

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
)

// A context is how the CONTEXT of a runtime is read and written.
type context struct {
	a *arch.Arch
	l clr.ContextLayout
}

func contextOf(a *arch.Arch, rp *clr.Replay) (context, error) {
	l, ok := rp.Context()
	if !ok {
		return context{}, fmt.Errorf("the layout of a CONTEXT of %s is not known", a.Name)
	}
	return context{a, l}, nil
}

// need returns how many bytes of a CONTEXT hold what a walk reads of it.
func (c *context) need() int { return max(c.a.Context.Size, c.l.FlagsAt+4) }

// read takes the registers of b, which has at least need bytes.
func (c *context) read(b []byte, regs *arch.Regs) (flags uint32) {
	c.a.Context.Load(b, regs)
	return binary.LittleEndian.Uint32(b[c.l.FlagsAt:])
}

// write puts the registers that are known, and flags, into b.
func (c *context) write(b []byte, regs *arch.Regs, flags uint32) {
	c.a.Context.Store(b, regs)
	binary.LittleEndian.PutUint32(b[c.l.FlagsAt:], flags)
}

// flagsAt reads the ContextFlags of the CONTEXT at a in the process, as a walk
// hands them on; missing is their address where the dump lacks them.
func (c *context) flagsAt(mem arch.Memory, a arch.Addr) (flags uint32, missing arch.Addr) {
	a += arch.Addr(c.l.FlagsAt)
	b := mem.View(a, 4)
	if b == nil {
		return 0, a
	}
	return binary.LittleEndian.Uint32(b) &^ c.l.XState, 0
}
