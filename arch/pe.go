package arch

// PECodes reads the PE unwind information of one CPU. Windows describes all
// code with it; CoreCLR describes JIT-compiled and ReadyToRun code with it on
// every OS (src/coreclr/unwinder of .NET 8 to 10).
type PECodes struct {
	// Entry is the size of a RUNTIME_FUNCTION: 12 bytes on x86-64, 8 on ARM64.
	Entry int
	// Function decodes one.
	Function func(b []byte) PEFunction
	// Rule finds the rule for q.PC. In a prologue it undoes what has run, in
	// an epilogue what has not; a return address is in no epilogue. Where
	// information ends or is wrong it says so and where; the rule is then not
	// to be used.
	Rule func(q *PEQuery, r *Rule) PEResult
	// Chained reports whether the unwind information at a goes on with that of
	// another function, of which this one is a part. ok is false where it is not at
	// hand. Nil for a CPU whose information does not say.
	Chained func(mem Memory, a Addr) (chained, ok bool)
}

// A PEFunction is a decoded RUNTIME_FUNCTION. Addresses are relative to the
// image base (JIT code: to the begin of its range section).
type PEFunction struct {
	Begin  uint32
	End    uint32 // 0 where the entry does not say
	Unwind uint32 // RVA of the unwind information, or packed data (ARM64)
}

// A PEQuery asks for the rule at one pc of a function.
type PEQuery struct {
	Mem  Memory // holds the unwind information and, if at hand, the code
	Base Addr   // what the RVAs of Func are relative to
	Func PEFunction
	PC   PC
}

// A PEResult says what became of a PEQuery.
type PEResult struct {
	Status PEStatus
	At     Addr // the byte that is missing or wrong, unless Status is PEOK
}

// A PEStatus is the outcome of a PEQuery.
type PEStatus uint8

const (
	PEOK      PEStatus = iota
	PEMissing          // bytes at PEResult.At are not at hand
	PEBad              // the unwind information at PEResult.At is broken or of an unknown kind
	PENoCode           // the code at PEResult.At is not at hand: the rule is the body's, and right unless the pc is in an epilogue
)
