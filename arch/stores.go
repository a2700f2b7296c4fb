package arch

// A codeValue is what is known of a register or a stack slot while
// instructions are followed: the value that a register had at the start plus an
// offset, or what memory held there.
type codeValue struct {
	kind valueKind
	reg  Reg
	off  int64
}

type valueKind uint8

const (
	valueUnknown   valueKind = iota
	valueSum                 // reg + off
	valueLoad                // the 8 bytes at reg + off
	valueElsewhere           // loaded from an address that is not known
)

// moved returns v + off.
func (v codeValue) moved(off int64) codeValue {
	if v.kind != valueSum {
		return codeValue{}
	}
	v.off += off
	return v
}

// stores are the words that were written to the stack along one way through code.
// They are copied where the code branches, so that each way has its own.
type stores struct {
	stored [16]struct{ at, v codeValue }
	n      int
	lost   bool // there were more
}

// find returns the index of the last store to the 8 bytes at at, or -1.
func (s *stores) find(at codeValue) int {
	for i := s.n - 1; i >= 0; i-- {
		if s.stored[i].at == at {
			return i
		}
	}
	return -1
}

// load returns what the 8 bytes at at hold.
func (s *stores) load(at codeValue) codeValue {
	if at.kind != valueSum {
		return codeValue{kind: valueElsewhere}
	}
	if i := s.find(at); i >= 0 {
		return s.stored[i].v
	}
	if s.lost {
		return codeValue{}
	}
	return codeValue{valueLoad, at.reg, at.off}
}

// put notes that the 8 bytes at at were written. Only addresses that count from sp,
// which the stack pointer counts from, or from fp, the frame pointer, are noted: a
// function restores registers from its frame and from nowhere else.
func (s *stores) put(at, v codeValue, sp, fp Reg) {
	if at.kind != valueSum || at.reg != sp && at.reg != fp {
		return
	}
	i := s.find(at)
	if i < 0 {
		if s.n == len(s.stored) {
			s.lost = true
			return
		}
		i = s.n
		s.n++
	}
	s.stored[i] = struct{ at, v codeValue }{at, v}
}
