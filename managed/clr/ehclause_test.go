package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A method with three clauses: a catch at 0x40, a filter at 0x60 whose catch is at
// 0x80, and a finally at 0xa0.
var madeClauses = []struct{ flags, handler, filter uint64 }{{0, 0x40, 0}, {clauseFilter, 0x80, 0x60}, {2, 0xa0, 0}}

// filterAt asks whether the funclet off bytes into the method of c is a filter.
func filterAt(r *Runtime, c Code, off arch.Addr) (is, known bool) {
	c.Funclet, c.FuncletKnown = true, true
	c.Body = arch.Span{Lo: c.Start + off, Hi: c.Start + off + 8}
	return r.Replay().Filter(&c)
}

// holdFilters demands that only the filter's funclet is one, and that a missing word
// at one of lost leaves it open.
func holdFilters(t *testing.T, m fakeMemory, c Code, lost ...arch.Addr) {
	t.Helper()
	r := fakeRuntime(t, m.core(t))
	for _, off := range []arch.Addr{0x40, 0x60, 0x80, 0xa0, 0xc0} {
		if is, known := filterAt(r, c, off); !known || is != (off == 0x60) {
			t.Errorf("%v: the funclet at %#x is a filter: %v, known %v", c.Kind, off, is, known)
		}
	}
	for _, at := range lost {
		v := m[at&^7]
		delete(m, at&^7)
		if is, known := filterAt(fakeRuntime(t, m.core(t)), c, 0x60); is || known {
			t.Errorf("%v: without the word at %v: %v, known %v", c.Kind, at, is, known)
		}
		m[at&^7] = v
	}
}

// TestJITClauses reads the clauses behind the header of a compiled method.
func TestJITClauses(t *testing.T) {
	const header, block = arch.Addr(0x7000_0000), arch.Addr(0x7000_1008)
	m := fakeMemory{}
	m.word(header+8, block) // RealCodeHeader.EHInfo of .NET 10
	m.word(block-8, 3)
	for i, cl := range madeClauses {
		at := block + 8 + arch.Addr(32*i)
		m.put(at, cl.flags, 4)
		m.put(at+12, cl.handler, 4)
		m.put(at+24, cl.filter, 4)
	}
	c := Code{Code: code.Code{Kind: code.JIT, Start: 0x7100_0000}, Header: header}
	holdFilters(t, m, c, header+8, block-8, block+8, block+8+32+24)
	if is, known := fakeRuntime(t, m.core(t)).Replay().Filter(&c); is || known {
		t.Errorf("code of which it is not known whether it is a funclet: %v, known %v", is, known)
	}
	m.word(block-8, maxClauses+1)
	if _, known := filterAt(fakeRuntime(t, m.core(t)), c, 0x60); known {
		t.Error("more clauses than a method has are read")
	}
}

// TestReadyToRunClauses reads them from the table of an image: pairs of a method and
// its clauses, by which it is searched, and a sentinel.
func TestReadyToRunClauses(t *testing.T) {
	const info, base, header, table, first = arch.Addr(0x7000_0000), arch.Addr(0x7200_0000), arch.Addr(0x7200_0100), 0x1000, 0x2000
	r := fakeRuntime(t, nil)
	m := fakeMemory{}
	m.word(field(info, r.codeLayout.R2RComposite), 0)
	m.word(field(info, r.codeLayout.R2RHeader), header)
	m.put(header, r2rSignature, 4)
	m.put(header+4, 9, 2)
	m.put(header+12, 1, 4)
	m.put(header+16, r2rClauses, 4)
	m.put(header+20, table, 4)
	const methods = 5 // and the sentinel
	m.put(header+24, 8*(methods+1), 4)
	for i := range uint64(methods + 2) { // what lies behind the table looks like it
		m.put(base+table+arch.Addr(8*i), 0x8000+0x1000*i, 4)
		// Only the third has clauses.
		rva := uint64(first)
		if i > 2 {
			rva += 24 * 3
		}
		m.put(base+table+arch.Addr(8*i)+4, rva, 4)
	}
	for i, cl := range madeClauses {
		at := base + first + arch.Addr(24*i)
		m.put(at, cl.flags, 4)
		m.put(at+12, cl.handler, 4)
		m.put(at+20, cl.filter, 4)
		m.put(at+16, 0, 4)
	}
	c := Code{Code: code.Code{Kind: code.ReadyToRun, Start: base + 0xa000}, Base: base, Header: info}
	holdFilters(t, m, c, header, header+16, base+table+16, base+first+24)
	for what, start := range map[string]arch.Addr{"no method begins there": 0xa008, "the sentinel": 0xd000} {
		other := c
		other.Start = base + start
		if is, known := filterAt(fakeRuntime(t, m.core(t)), other, 0x60); is || known {
			t.Errorf("%s: %v, known %v", what, is, known)
		}
	}
}

// TestRecordedClauses: in recorded dumps every funclet of compiled code is a
// handler or a filter of its method's clauses; a program with one exception filter
// has more handlers than filters.
func TestRecordedClauses(t *testing.T) {
	for _, path := range corpus.Dumps(t, `^net(8|9|10)-scenarios-(x64|arm64)`) {
		p, err := loader.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rts, _ := Open(p)
		for _, r := range rts {
			rp := r.Replay()
			filters, others := 0, 0
			r.Compiled(func(m code.Compiled) bool {
				header, _ := r.CodeAt(m.Span.Lo)
				n, ok := r.u32(field(header.Header, r.codeLayout.HdrCount))
				for i := uint32(1); ok && m.Kind != code.CompiledStub && i < n; i++ {
					f, missing := r.function(field(header.Header, r.codeLayout.HdrUnwinds), i)
					if missing != 0 {
						break
					}
					c, _ := r.CodeAt(header.Base + arch.Addr(f.Begin))
					is, known := rp.Filter(&c)
					switch {
					case is:
						filters++
					case known:
						others++
					}
				}
				return true
			})
			if t.Logf("%s: %d filters, %d other funclets", path, filters, others); filters == 0 || others < 2*filters {
				t.Errorf("%s: %d filters, %d other funclets", path, filters, others)
			}
		}
	}
}
