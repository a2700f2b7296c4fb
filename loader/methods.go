package loader

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seamwalk/seam/arch"
)

// A Method is one piece of code that a JIT compiler made.
type Method struct {
	Code   arch.Span
	ID     uint64 // identity in its runtime: the MethodDesc's address for CoreCLR
	Name   string // "" where the source leaves naming to who prints it, as "clr" does
	Source string // what told of it: "clr"
	Kind   string // "jit", "stub" or "dynamic"; see clr.Runtime.JITMethods
}

// A MethodTable lists the JIT-compiled methods of a process, by address. The
// zero value is empty. It may be asked by many goroutines at once.
type MethodTable struct {
	mu   sync.Mutex
	list []Method
	fill func() []Method
}

// Fill sets where the methods come from. It is called once, when the table is
// first asked, because most walks need only the few methods they meet.
func (t *MethodTable) Fill(f func() []Method) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fill, t.list = f, nil
}

// All returns every method, by address. The slice is the table's own.
func (t *MethodTable) All() []Method {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fill != nil {
		t.list = t.fill()
		t.fill = nil
		slices.SortFunc(t.list, func(a, b Method) int { return cmp.Compare(a.Code.Lo, b.Code.Lo) })
	}
	return t.list
}

// At returns the method whose code holds a.
func (t *MethodTable) At(a arch.Addr) (Method, bool) {
	all := t.All()
	i, ok := slices.BinarySearchFunc(all, a, func(m Method, a arch.Addr) int {
		switch {
		case m.Code.Hi <= a:
			return -1
		case m.Code.Lo > a:
			return 1
		}
		return 0
	})
	if !ok {
		return Method{}, false
	}
	return all[i], true
}
