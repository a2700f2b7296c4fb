package stacks

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A Compiled is one piece of code that a runtime of the process has compiled or
// generated.
type Compiled struct {
	Code     arch.Span
	ID       uint64 // identity of the method in its runtime: the MethodDesc of CoreCLR; 0: not known
	Name     string // in the metadata; "" if not known
	Function string // for eyes; "" if not known, and for a block of stubs
	Kind     string // "jit", "dynamic" or "stub"
	Source   string // who knows of it: "clr"
}

// Named reports whether nothing is missing from the names of c. A block of stubs
// has none.
func (c *Compiled) Named() bool { return c.Function != "" || c.Kind == "stub" }

// Methods returns what the runtimes of the process have compiled, by address.
func (s *Stacks) Methods() (list []Compiled) {
	p := s.session.Process
	p.GuardRetry(func() {
		all := s.session.Methods()
		list = make([]Compiled, len(all))
		for i, m := range all {
			c := &list[i]
			*c = Compiled{Code: m.Span, ID: uint64(m.ID), Name: m.Name, Function: m.Name, Kind: m.Kind.String(), Source: m.Source}
			switch {
			case m.Name != "":
			case m.Kind == code.CompiledStub:
				c.Function = m.Stub.String()
			default:
				own := m.Code()
				n := s.name(m.Runtime, &own)
				c.Name, c.Function = n.m.Name, n.function
			}
		}
	})
	return list
}
