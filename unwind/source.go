package unwind

import "github.com/seamwalk/seam/arch"

// A Memory is the memory of the process. A hole is reported, never read as zero.
type Memory = arch.Memory

// An Image is a loaded ELF or PE file, as far as unwinding needs it.
type Image interface {
	Span() arch.Span
	Bias() uint64 // Addr = LinkAddr + Bias
	// Table returns where a mapped table lies: ".eh_frame_hdr", ".eh_frame",
	// ".pdata"; if known also ".text" and ".got.plt", which a pointer may be
	// relative to. It is asked once, when code of the image is first met.
	Table(name string) (arch.Span, bool)
	// Section returns an unmapped section's bytes, unpacked: ".debug_frame".
	Section(name string) []byte
}

// An Outcome is what a Source has to say about a frame.
type Outcome uint8

const (
	NoInfo  Outcome = iota // nothing; ask the next source
	UseRule                // Step.Rule leads to the caller, here and on every later visit
	Stepped                // Step.Out are the caller's registers, this time
	Final                  // this frame has no caller
	Broken                 // there is information and it cannot be used; Step.Why says why
)

// A Source knows how to leave some frames. It is read-only once opened, and
// used by many walkers at a time: what it must write to, it writes in the Step.
type Source interface {
	Unwind(s *Step) Outcome
}

// A Step is one question to a Source, and the room for its answer.
type Step struct {
	PC   arch.PC
	Regs arch.Regs // of the frame to leave; a Source does not write to them
	Mem  Memory
	Arch *arch.Arch

	Rule arch.Rule // for UseRule
	Once bool      // for UseRule: the answer rests on Regs too, so it is not to be kept
	Out  arch.Regs // for Stepped; Exact then says whether its pc is exact
	// Exact: the caller that Out describes was interrupted, not calling.
	Exact bool
	// RAAt is where Stepped read the return address, or 0 when it was in a register.
	RAAt arch.Addr
	Why  Stop // for Broken: Reason and At
	// Holes has, for each register that is not known because the word that it was
	// saved in is missing, the address of that word; 0 for registers that are not
	// known for another reason. A walk that needs such a register several frames
	// later ends and names the word. A Source that answers Stepped sets Holes for
	// the registers that Out lacks.
	Holes [arch.MaxRegs]arch.Addr

	// Query is room for a Source that asks Arch.PE. A PEQuery in a variable of its
	// own would be allocated for every rule that is not cached.
	Query arch.PEQuery

	scratch scratch
}

// A kind is a way of knowing how to leave a frame.
type kind struct {
	by   By
	when when
	open func(u *Unwinder, img Image) Source // nil if there is nothing to ask
}

// when says when a kind is asked.
type when uint8

const (
	first     when = iota // of a pc that is about to run, before all others but Options.Sources
	inImage               // for code of an image; opened once an image
	uncovered             // for code that no table covers, in images and elsewhere
	guessing              // after all others, and only if Options.Guess
)

// kinds lists the ways of leaving a frame, in the order they are asked: what
// knows the code comes before what guesses. A new one is a file of its own, a
// By, and a word here.
var kinds = []kind{
	{ByPrologue, first, openNowhere},
	{ByEhFrame, inImage, openEhFrame},
	{ByDebugFrame, inImage, openDebugFrame},
	{ByPdata, inImage, openPdata},
	{ByEntry, uncovered, openEntry},
	{ByPrologue, uncovered, openSignalReturn},
	{ByPrologue, uncovered, openPrologue},
	{ByFramePointer, guessing, openFramePointer},
}

// By says how a frame was found.
type By uint8

const (
	ByContext       By = iota // the registers the thread stopped with
	ByEhFrame                 // DWARF call frame information, loaded
	ByDebugFrame              // DWARF call frame information, .debug_frame
	ByPdata                   // PE unwind codes of an image
	ByCodes                   // PE unwind codes of managed code
	ByPrologue                // by following the instructions of code that no table describes
	ByFramePointer            // the saved frame pointer
	ByExplicitFrame           // an explicit Frame of the runtime
	ByEntry                   // none: it is where the process began, which a stop says
	numBys
)

var bys = [numBys]string{
	ByContext:       "context",
	ByEhFrame:       "eh_frame",
	ByDebugFrame:    "debug_frame",
	ByPdata:         "pdata",
	ByCodes:         "codes",
	ByPrologue:      "prologue",
	ByFramePointer:  "frame_pointer",
	ByExplicitFrame: "explicit_frame",
	ByEntry:         "entry",
}

func (b By) String() string {
	if b < numBys {
		return bys[b]
	}
	return "?"
}
