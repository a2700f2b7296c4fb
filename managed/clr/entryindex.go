package clr

import (
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/managed/code"
)

// CompleteCode finds out what CodeAt had to leave open of c because the dump lacks
// it: createdump writes what its own walk has touched, and that loses threads.
// The method of JIT-compiled code without its header is that whose precode
// leads to it. ReadyToRun code whose entry the dump's map of entry points lacks
// is in one of the image's own tables of them: Row or Instance, and Method if
// the module's map of methods has it, or a precode leads there.
func (r *Runtime) CompleteCode(c *Code) {
	switch {
	case c.Method != 0:
	case c.Kind == code.JIT && c.Start != 0:
		c.Method = r.orphanMethod(c.Start)
	case c.Kind == code.ReadyToRun && c.Body.Lo != 0:
		if r.completeR2R(c); c.Method == 0 && c.Start != 0 {
			c.Method = r.orphanMethod(c.Start)
		}
	}
}

// MethodOf names the method of c, by its image's table of entry points where its
// MethodDesc is not known. See MethodAt. The error is code.ErrNoMethod if neither
// is known.
func (r *Runtime) MethodOf(c *Code) (code.Method, error) {
	switch {
	case c.Method != 0:
		return r.MethodAt(c.Method)
	case c.Row == 0:
		return code.Method{}, code.ErrNoMethod
	}
	d := newDescriber(r, 0)
	d.m.Token = uint32(ecma.MethodDef)<<tokenRowBits | c.Row
	at, ok := r.word(c.Header) // a ReadyToRunInfo begins with its Module
	if !ok {
		d.fail(missing("the module of its image", c.Header))
		return d.m, d.err
	}
	mod := r.module(arch.Addr(at))
	switch {
	case c.Instance == 0:
		d.known(code.PartTypeArgs | code.PartMethodArgs)
	case mod.err == nil:
		in, err := mod.meta.Instance(r.some(c.Instance, maxInstance))
		if d.fail(err); err == nil {
			d.m.TypeArgs, d.m.MethodArgs = csharp(in.TypeArgs), csharp(in.MethodArgs)
			d.known(code.PartTypeArgs | code.PartMethodArgs)
		}
	}
	d.named(mod, 0, c.Row)
	return d.m, d.err
}

// entryNamed names the method of ReadyToRun code whose MethodDesc is known and not in
// the dump, by its image's table of entry points: that must have an entry where the
// runtime says that the method begins, and no other MethodDesc for it.
func (r *Runtime) entryNamed(c *code.Code) (m code.Method, ok bool) {
	full, _ := r.CodeAt(c.Start)
	full.Method, full.Body.Lo = 0, c.Start
	r.completeR2R(&full)
	if full.Row == 0 || full.Start != c.Start || full.Method != 0 && full.Method != c.Method {
		return m, false
	}
	full.Method = 0 // which it would be named by
	m, err := r.MethodOf(&full)
	m.ID = c.Method
	return m, err == nil
}

// An entryIndex has, by ReadyToRunInfo, the inverse of the image's tables of
// entry points.
type entryIndex struct {
	mu     sync.Mutex
	images map[arch.Addr]func() map[uint32]entry // each makes its own, once
	read   int                                   // rows and entries of all images
}

// maxEntryReads bounds what is read of the tables of all images: the rows of a
// hundred images like the framework's largest.
const maxEntryReads = 1 << 22

// An entry says what code begins with a RUNTIME_FUNCTION: that of a MethodDef
// row, or of an instantiation of one, whose signature lies in a bucket of the
// other table. It is empty where two claim the same.
type entry struct {
	row       uint32
	signature arch.Addr
	bucket    uint32
	part      imagePart
}

// completeR2R finds the method that c's RUNTIME_FUNCTION belongs to: the nearest
// at or before it that is an entry point. What is no entry point itself must be
// one of the handlers that the exception clauses of that method name; without
// that the tables may just not have the method, or lack the bytes that do.
func (r *Runtime) completeR2R(c *Code) {
	x, ok := r.r2rImage(c.Header)
	if !ok {
		return
	}
	at, missing := r.searchFunctions(x.funcs, x.count, uint32(c.Body.Lo-c.Base))
	if missing != 0 || at < 0 {
		return
	}
	i := uint32(at)
	if hot, missing := r.hotIndex(c.Header, i); missing != 0 || hot != i {
		return
	}
	entries := r.entryPoints(c.Header, x, c.Base)
	e, ok := entries[i]
	for n := 0; !ok && i > 0 && n < maxFunclets; n++ {
		i--
		e, ok = entries[i]
	}
	f, missing := r.function(x.funcs, i)
	if e.row == 0 || missing != 0 {
		return
	}
	m := *c
	m.Header = e.part.info
	m.Index, m.Start, m.Funclet = i, c.Base+arch.Addr(f.Begin), i != uint32(at)
	if m.Funclet && !r.handles(&m) {
		return
	}
	*c = m
	c.Row, c.Instance, c.FuncletKnown = e.row, e.signature, true
	// What the index was made of was not noted as read; this is the part of
	// it that counts.
	mod, ok := r.keepPart(&e.part, x.whole)
	t := e.part.tables
	t.instances.r = r
	switch {
	case !ok:
		return
	case e.signature == 0:
		r.entryFunction(t.rows, e.row)
		c.Method = r.methodDef(mod, e.row)
		return
	}
	t.instances.bucket(e.bucket, func(at arch.Addr) bool { return at != e.signature })
	r.some(e.signature, maxInstance)
}

// handles reports whether c's funclet is a handler of an exception clause of
// its method.
func (r *Runtime) handles(c *Code) (is bool) {
	off := uint32(c.Body.Lo - c.Start)
	r.imageClauses(c, func(flags, handler, filter uint32) bool {
		is = handler == off || flags&clauseFilter != 0 && filter == off
		return !is
	})
	return is
}

// entryFunction returns the index of the RUNTIME_FUNCTION that the code of
// MethodDef row rid begins with.
func (r *Runtime) entryFunction(table arch.Addr, rid uint32) (i uint32, ok bool) {
	elem, ok := nativeArray{r: r, at: table}.find(rid - 1)
	if !ok {
		return 0, false
	}
	return r.functionIndex(elem)
}

// functionIndex reads the index of a RUNTIME_FUNCTION in a table of entry
// points: behind one bit, or two where fixups go with it.
func (r *Runtime) functionIndex(a arch.Addr) (i uint32, ok bool) {
	v, _, ok := r.nativeNumber(a)
	return v >> (1 + v&1), ok
}

// entryMethod returns the MethodDesc that has the code which an image was
// given for MethodDef row rid; 0 if there is none, or if that code was never
// asked for.
func (r *Runtime) entryMethod(s rangeSection, rid uint32) arch.Addr {
	l := &r.codeLayout
	info, ok := r.word(field(s.r2r, l.ModuleR2R))
	if !ok {
		return 0
	}
	x, ok := r.r2rImage(arch.Addr(info))
	if !ok {
		return 0
	}
	section, ok := r.imageSection(x.header, r2rEntryPoints)
	if !ok {
		return 0
	}
	i, ok := r.entryFunction(s.span.Lo+arch.Addr(section.rva), rid)
	if !ok || i >= x.count {
		return 0
	}
	f, missing := r.function(x.funcs, i)
	if missing != 0 {
		return 0
	}
	probes := maxProbes
	md, _ := r.hashLookup(field(x.whole, l.R2REntries), uint64(s.span.Lo)+uint64(f.Begin), &probes)
	return arch.Addr(md)
}

// entryTables are where an image has its entry points; an address of 0 is a
// table that it has not, or that cannot be found.
type entryTables struct {
	rows      arch.Addr // a nativeArray
	size      uint32    // of the section that it lies in, in bytes
	instances nativeTable
}

func (r *Runtime) entryTables(header, base arch.Addr) (t entryTables) {
	if s, ok := r.imageSection(header, r2rEntryPoints); ok {
		t.rows, t.size = base+arch.Addr(s.rva), s.size
	}
	if s, ok := r.imageSection(header, r2rInstances); ok {
		t.instances = nativeTable{r: r, at: base + arch.Addr(s.rva), size: s.size}
	}
	return t
}

// entryPoints returns the inverse of the tables of entry points of the image that
// img, which info leads to, is or is a component of.
func (r *Runtime) entryPoints(info arch.Addr, img r2rImage, base arch.Addr) map[uint32]entry {
	x := &r.entries
	x.mu.Lock()
	m, ok := x.images[img.whole]
	if !ok {
		if x.images == nil {
			x.images = map[arch.Addr]func() map[uint32]entry{}
		}
		m = bin.OnceValue(func() map[uint32]entry { return r.readEntries(r.parts(info, &img, base)) })
		x.images[img.whole] = m
	}
	x.mu.Unlock()
	return m()
}

// take says how many of n rows or entries may still be read.
func (x *entryIndex) take(n uint32) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, uint32(maxEntryReads-x.read))
	x.read += int(n)
	return n
}

// readEntries reads the tables of entry points of the parts of an image.
func (r *Runtime) readEntries(parts []imagePart) map[uint32]entry {
	m := map[uint32]entry{}
	for _, p := range parts {
		r.readTables(p.tables, func(i uint32, e entry) {
			e.part = p
			if _, taken := m[i]; taken {
				e = entry{}
			}
			m[i] = e
		})
	}
	return m
}

// readTables yields what the tables t have, with the index of the RUNTIME_FUNCTION
// that the code of each entry begins with.
func (r *Runtime) readTables(t entryTables, yield func(i uint32, e entry)) {
	// Whole tables are read for one answer: a reader that notes nothing.
	quiet := &Runtime{proc: r.proc, mem: r.mem.Untracked()}
	if head, _, ok := quiet.nativeNumber(t.rows); ok && t.rows != 0 {
		// Each block of rows has an offset of a byte at least.
		rows := r.entries.take(uint32(min(uint64(head>>2), nativeBlock*uint64(t.size))))
		for rid := uint32(1); rid <= rows; rid++ {
			if i, ok := quiet.entryFunction(t.rows, rid); ok {
				yield(i, entry{row: rid})
			}
		}
	}
	if t.instances.r = quiet; t.instances.at != 0 && r.entries.take(1) > 0 {
		t.instances.entries(func(bucket uint32, at arch.Addr) {
			if r.entries.take(1) == 0 {
				return
			}
			row, size, ok := ecma.InstanceSize(quiet.some(at, maxInstance))
			if i, ok2 := quiet.functionIndex(at + arch.Addr(size)); ok && ok2 {
				yield(i, entry{row: row, signature: at, bucket: bucket})
			}
		})
	}
}

// maxInstance bounds the signature of an instantiation, in bytes. Those of the
// framework have fewer than a hundred.
const maxInstance = 1 << 10

// some returns n bytes at a, or those up to the end of a's page where the next
// is missing.
func (r *Runtime) some(a arch.Addr, n int) []byte {
	b := r.linked(a, n)
	if rest := int(pageSize - a%pageSize); b == nil && rest < n {
		b = r.linked(a, rest)
	}
	return b
}
