package arch

// A Signal is a signal of an operating system.
type Signal struct {
	Number uint32
	Name   string
	Codes  []string // what its si_code says, from 1 on
	// Aborts: a program ends itself by it (abort).
	Aborts bool
	// Accesses: its address is one that the program could not access.
	Accesses bool
}

// SignalOf returns the signal of that number, nil if it is not known.
func (abi *ABI) SignalOf(n uint32) *Signal {
	for i := range abi.Signals {
		if s := &abi.Signals[i]; s.Number == n {
			return s
		}
	}
	return nil
}

// SignalCode names a si_code of s, "" if it is not known.
func (abi *ABI) SignalCode(s *Signal, si int32) string {
	if si > 0 && int(si) <= len(s.Codes) {
		return s.Codes[si-1]
	}
	return abi.SignalCodes[si]
}

// SignalContext returns where the ucontext_t of a signal lies, if a handler returns
// to pc: that of the frame whose stack pointer is sp.
func (abi *ABI) SignalContext(mem interface{ View(a Addr, n int) []byte }, pc PC, sp Addr) (at Addr, ok bool) {
	for i := range abi.SigReturns {
		code := &abi.SigReturns[i]
		for _, begin := range code.Starts {
			// The return address of a handler is the first byte, so pc is
			// looked up as it is, exact or not.
			if !pc.Exact && begin != 0 {
				break
			}
			if string(mem.View(pc.Addr-Addr(begin), len(code.Code))) == code.Code {
				return sp + Addr(code.Context), true
			}
		}
	}
	return 0, false
}

// An Access is what a program did with memory.
type Access uint8

const (
	AccessUnknown Access = iota
	AccessRead
	AccessWrite
	AccessExecute
)

// accesses are what messages call them.
var accesses = [...]string{AccessUnknown: "accessing", AccessRead: "reading", AccessWrite: "writing", AccessExecute: "executing"}

func (a Access) String() string { return accesses[a] }
