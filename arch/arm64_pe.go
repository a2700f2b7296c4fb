package arch

import "encoding/binary"

// What the low bits of the second word of a RUNTIME_FUNCTION say ("ARM64
// exception handling" of Microsoft's documentation).
const (
	arm64Xdata    = 0 // the word is the RVA of an .xdata record
	arm64Packed   = 1 // the word itself describes a function of the usual shape
	arm64Fragment = 2 // the same for a part of one: no prologue and no epilogue in it
	arm64Chained  = 3 // the word less 3 is the RVA of another entry
)

// arm64PEFunction decodes an entry. Only a packed one says how long its
// function is; for the others that is in the .xdata record.
func arm64PEFunction(b []byte) PEFunction {
	if len(b) < 8 {
		return PEFunction{}
	}
	f := PEFunction{Begin: binary.LittleEndian.Uint32(b), Unwind: binary.LittleEndian.Uint32(b[4:])}
	if k := f.Unwind & 3; k == arm64Packed || k == arm64Fragment {
		f.End = f.Begin + f.Unwind>>2&0x7ff*4
	}
	return f
}

// An arm64Info is the unwind information of one function: codes in the order
// in which they undo its prologue, which is the order of an epilogue too.
type arm64Info struct {
	at     Addr   // of codes; of the function, where a packed word stands for them
	codes  []byte // of the prologue, and of epilogues
	length uint32 // instructions of the function
	scopes Addr   // of the epilogue scopes, one word each
	count  int    // epilogue scopes
	last   int    // index of the codes of the epilogue that ends the function, or -1
}

// arm64PERule runs the unwind codes of q.Func from the place that belongs to
// q.PC. Instructions are 4 bytes and a code stands for one of them, so prologue
// and epilogue are found by counting; the code itself is not looked at.
func arm64PERule(q *PEQuery, r *Rule) PEResult {
	fn := q.Func
	whole := false
	for hops := 0; fn.Unwind&3 == arm64Chained; hops++ {
		at := q.Base + Addr(fn.Unwind&^3)
		b := q.Mem.View(at, 8)
		if b == nil {
			return PEResult{PEMissing, at}
		}
		if hops == 32 {
			return PEResult{PEBad, at}
		}
		fn, whole = arm64PEFunction(b), true
	}
	var i arm64Info
	var made [arm64MaxPacked]byte
	if fn.Unwind&3 == arm64Xdata {
		if res := i.read(q.Mem, q.Base+Addr(fn.Unwind)); res.Status != PEOK {
			return res
		}
	} else {
		i = arm64Unpack(fn.Unwind, &made)
		i.at = q.Base + Addr(fn.Begin)
	}
	start, skip := 0, uint32(0)
	if off := (q.PC.Addr - q.Base - Addr(fn.Begin)) / 4; !whole && off < 1<<18 {
		var res PEResult
		if start, skip, res = i.place(q, uint32(off)); res.Status != PEOK {
			return res
		}
	}
	f := arm64Frame{base: arm64SP}
	if k := f.undo(i.codes, start, skip); k >= 0 {
		if fn.Unwind&3 != arm64Xdata {
			k = 0
		}
		return PEResult{PEBad, i.at + Addr(k)}
	}
	if !f.rule(r) {
		return PEResult{PEBad, i.at}
	}
	return PEResult{}
}

// read reads an .xdata record.
func (i *arm64Info) read(mem Memory, at Addr) PEResult {
	b := mem.View(at, 4)
	if b == nil {
		return PEResult{PEMissing, at}
	}
	h := binary.LittleEndian.Uint32(b)
	if h>>18&3 != 0 {
		return PEResult{PEBad, at}
	}
	i.length, i.count, i.last = h&0x3ffff, int(h>>22&31), -1
	words := int(h >> 27)
	i.scopes = at + 4
	if h>>22 == 0 {
		if b = mem.View(at+4, 4); b == nil {
			return PEResult{PEMissing, at + 4}
		}
		x := binary.LittleEndian.Uint32(b)
		i.count, words = int(x&0xffff), int(x>>16&0xff)
		i.scopes += 4
	}
	if h>>21&1 != 0 {
		i.last, i.count = i.count, 0
	}
	i.at = i.scopes + Addr(4*i.count)
	if words == 0 {
		return PEResult{}
	}
	if i.codes = mem.View(i.at, 4*words); i.codes == nil {
		return PEResult{PEMissing, i.at}
	}
	return PEResult{}
}

// place finds where in the codes to begin for the instruction off, and how
// many instructions of that row have already run (an epilogue), or have not
// run yet (a prologue).
func (i *arm64Info) place(q *PEQuery, off uint32) (start int, skip uint32, res PEResult) {
	// A return address can lie in a prologue: large frames call __chkstk
	// there. It cannot in an epilogue, but right before its first instruction.
	if n := arm64Count(i.codes, 0); off < n {
		return 0, n - off, res
	}
	if !q.PC.Exact {
		return 0, 0, res
	}
	if i.last >= 0 {
		if n := arm64Count(i.codes, i.last) + 1; n <= i.length && off >= i.length-n && off < i.length {
			return i.last, off - (i.length - n), res
		}
		return 0, 0, res
	}
	for k := range i.count {
		at := i.scopes + Addr(4*k)
		b := q.Mem.View(at, 4)
		if b == nil {
			return 0, 0, PEResult{PEMissing, at}
		}
		w := binary.LittleEndian.Uint32(b)
		from := w & 0x3ffff
		if off < from {
			break // they are in order
		}
		if first := int(w >> 22); off-from < arm64Count(i.codes, first)+1 {
			return first, off - from, res
		}
	}
	return 0, 0, res
}

// arm64CodeLen returns the length of the unwind code that begins with c.
func arm64CodeLen(c byte) int {
	switch {
	case c < 0xc0:
		return 1
	case c < 0xe0, c == 0xe2, c == 0xf8:
		return 2
	case c == 0xe7, c == 0xf9:
		return 3
	case c == 0xe0, c == 0xfa:
		return 4
	case c == 0xfb:
		return 5
	}
	return 1
}

// arm64Count returns how many instructions the codes from k on stand for. The
// codes of machine frames (e8 to f7) stand for none.
func arm64Count(codes []byte, k int) (n uint32) {
	for k < len(codes) && codes[k]&0xfe != 0xe4 {
		if c := codes[k]; c < 0xe8 || c > 0xf7 {
			n++
		}
		k += arm64CodeLen(codes[k])
	}
	return n
}
