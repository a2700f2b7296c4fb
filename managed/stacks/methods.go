package stacks

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
)

// A Compiled is one piece of code that a runtime of the process has compiled or
// generated.
type Compiled struct {
	Code     arch.Span
	ID       uint64 // identity of the method in its runtime: the MethodDesc of CoreCLR; 0: not known
	Name     string // in the metadata; "" if not known
	Function string // for eyes; "" if not known, and for a block of stubs
	Kind     string // "jit", "dynamic" or "stub"
	Source   string // what told of it: "clr"
}

// Named reports whether nothing is missing from the names of c. A block of stubs
// has none.
func (c *Compiled) Named() bool { return c.Function != "" || c.Kind == "stub" }

// Methods returns what the runtimes of the process have compiled, by address.
func (s *Stacks) Methods() (list []Compiled) {
	p := s.session.Process
	p.GuardRetry(func() {
		all := p.Methods.All()
		list = make([]Compiled, len(all))
		for i, m := range all {
			c := &list[i]
			*c = Compiled{Code: m.Code, ID: m.ID, Name: m.Name, Kind: m.Kind, Source: m.Source}
			code, rt := s.session.Lookup(m.Code.Lo)
			switch {
			case m.Name != "" || rt == nil:
			case m.ID != 0:
				n := s.name(rt, &clr.Code{Method: arch.Addr(m.ID)})
				c.Name, c.Function = n.m.Name, n.function
			case code.Kind == clr.Stub:
				c.Function = code.Stub.String()
			}
		}
	})
	return list
}
