package clr

import (
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
)

// Complete finds out what Lookup had to leave open of c because the dump lacks
// it: createdump writes what its own walk has touched, and that loses threads.
// The method of JIT-compiled code without its header is that whose precode
// leads to it. ReadyToRun code whose entry the dump's map of entry points lacks
// is in the image's own table of them: Row, and Method if the module's map of
// methods has it.
func (r *Runtime) Complete(c *Code) {
	switch {
	case c.Method != 0:
	case c.Kind == JIT && c.Start != 0:
		c.Method = r.orphanMethod(c.Start)
	case c.Kind == ReadyToRun && c.Body.Lo != 0:
		r.completeR2R(c)
	}
}

// DescribeCode is Describe for the method of c, which it names by its row where
// its MethodDesc is not known.
func (r *Runtime) DescribeCode(c *Code) (Method, error) {
	if c.Method != 0 || c.Row == 0 {
		return r.Describe(c.Method)
	}
	d := describer{r: r}
	d.m.Token = uint32(ecma.MethodDef)<<tokenRowBits | c.Row
	if mod, ok := r.word(c.Header); ok { // a ReadyToRunInfo begins with its Module
		d.named(r.module(arch.Addr(mod)), 0, c.Row)
	}
	return d.m, d.err
}

// An entryIndex has, by ReadyToRunInfo, the inverse of the image's table of
// entry points: the MethodDef row of the RUNTIME_FUNCTION that its code begins
// with. Code of generic instantiations is in another table.
type entryIndex struct {
	mu   sync.Mutex
	rows map[arch.Addr]map[uint32]uint32
}

// completeR2R finds the method that c's RUNTIME_FUNCTION belongs to: the nearest
// at or before it that is an entry point.
func (r *Runtime) completeR2R(c *Code) {
	l := &r.codeLayout
	funcs, ok1 := r.word(field(c.Header, l.R2RFuncs))
	count, ok2 := r.u32(field(c.Header, l.R2RNumFuncs))
	composite, ok3 := r.word(field(c.Header, l.R2RComposite))
	header, ok4 := r.word(field(c.Header, l.R2RHeader))
	// A composite image has a table of entry points for each component.
	if !ok1 || !ok2 || !ok3 || !ok4 || arch.Addr(composite) != c.Header {
		return
	}
	section, _, ok := r.r2rSection(arch.Addr(header), r2rEntryPoints)
	at, missing := r.searchFunctions(arch.Addr(funcs), count, uint32(c.Body.Lo-c.Base))
	if !ok || missing != 0 || at < 0 {
		return
	}
	table := c.Base + arch.Addr(section)
	rows := r.entryRows(c.Header, table)
	for i, n := uint32(at), 0; n < maxFunclets; i, n = i-1, n+1 {
		if rid, ok := rows[i]; ok {
			f, missing := r.function(arch.Addr(funcs), i)
			if missing != 0 {
				return
			}
			c.Row, c.Index, c.Start, c.Funclet = rid, i, c.Base+arch.Addr(f.Begin), n > 0
			// What the index was made of was not noted as read; this is
			// the part of it that counts.
			r.entryFunction(table, rid)
			if mod, ok := r.word(c.Header); ok {
				c.Method = r.methodDef(arch.Addr(mod), rid)
			}
			return
		}
		if i == 0 {
			return
		}
	}
}

// entryFunction returns the index of the RUNTIME_FUNCTION that the code of
// MethodDef row rid begins with: the element behind one bit, or two where
// fixups go with it.
func (r *Runtime) entryFunction(table arch.Addr, rid uint32) (i uint32, ok bool) {
	elem, ok := nativeArray{r: r, at: table}.find(rid - 1)
	if !ok {
		return 0, false
	}
	v, _, ok := r.nativeNumber(elem)
	return v >> (1 + v&1), ok
}

// entryRows returns the inverse of the table of entry points of info.
func (r *Runtime) entryRows(info, table arch.Addr) map[uint32]uint32 {
	x := &r.entries
	x.mu.Lock()
	defer x.mu.Unlock()
	if rows, ok := x.rows[info]; ok {
		return rows
	}
	if x.rows == nil {
		x.rows = map[arch.Addr]map[uint32]uint32{}
	}
	rows := map[uint32]uint32{}
	x.rows[info] = rows
	// The whole table is read for one answer: a reader that notes nothing.
	quiet := &Runtime{proc: r.proc, mem: r.mem.Untracked()}
	head, _, ok := quiet.nativeNumber(table)
	if !ok {
		return rows
	}
	for rid := uint32(1); rid <= min(head>>2, maxRows); rid++ {
		if i, ok := quiet.entryFunction(table, rid); ok {
			rows[i] = rid
		}
	}
	return rows
}
