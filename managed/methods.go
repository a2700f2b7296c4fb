package managed

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A Method is one piece of code that a runtime made while the process ran.
type Method struct {
	code.Compiled
	Runtime code.Runtime // that made it
}

// A methodTable has the methods of all runtimes of a session, by address. It is
// made when it is first asked for, because most walks need only the few methods
// that they meet.
type methodTable struct {
	mu   sync.Mutex
	made bool
	list []Method
}

// Methods returns what the runtimes of the process have compiled and is still
// alive, by address. The slice is the session's own. The first call reads the
// whole list from the process's memory: see [loader.Process.Guard].
func (s *Session) Methods() []Method {
	t := &s.methods
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.made {
		t.list = s.listMethods() // a read can break off: nothing is kept then
		t.made = true
	}
	return t.list
}

func (s *Session) listMethods() (list []Method) {
	for _, rt := range s.Runtimes {
		if l, ok := rt.(code.Listing); ok {
			l.Compiled(func(c code.Compiled) bool {
				list = append(list, Method{c, rt})
				return true
			})
		}
	}
	slices.SortFunc(list, func(a, b Method) int { return cmp.Compare(a.Span.Lo, b.Span.Lo) })
	return list
}

// MethodAt returns the method of Methods whose code holds a.
func (s *Session) MethodAt(a arch.Addr) (Method, bool) {
	all := s.Methods()
	i, ok := slices.BinarySearchFunc(all, a, func(m Method, a arch.Addr) int {
		switch {
		case m.Span.Hi <= a:
			return -1
		case m.Span.Lo > a:
			return 1
		}
		return 0
	})
	if !ok {
		return Method{}, false
	}
	return all[i], true
}
