package clr

import "github.com/seamwalk/seam/arch"

// ILOffset returns the IL offset that the JIT's map has for pc in code c.
func (r *Runtime) ILOffset(c Code, pc arch.PC) (off uint32, ok bool) { return 0, false }
