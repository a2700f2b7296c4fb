package unwind

import "github.com/seamwalk/seam/arch"

// A Frame is one physical frame.
type Frame struct {
	PC arch.PC
	SP arch.Addr
	By By // how the frame was found; 0 is the thread's own context
}

// A Known is a Source and what frames found by it are marked with.
type Known struct {
	By     By
	Source Source
}

// Options change how an Unwinder works. The zero value is fine.
type Options struct {
	// Sources are asked before the unwinder's own, in order: they know code
	// that no image describes.
	Sources []Known
	// Guess asks the frame pointer when nothing else knows the code. Without
	// it such a walk ends with NoRule, and the caller of the walk decides.
	Guess bool
	// CalleeSaved are the registers that survive a call; 0: the System V ABI's.
	CalleeSaved arch.RegSet
	// MaxFrames bounds one walk; 0: 1,000,000.
	MaxFrames int
}

// A Hijack is a return address that somebody replaced on the stack to get
// control when the function returns. A step that reads its return address
// from Slot means Return, and the caller's stack pointer is SP.
type Hijack struct {
	Slot, Return, SP arch.Addr
}

// An Unwinder holds what is shared by all walks of one process. It is
// read-only, and safe for concurrent use.
type Unwinder struct{}

// New prepares to unwind code of CPU a that lies in images.
func New(a *arch.Arch, mem Memory, images []Image, opt *Options) *Unwinder { return nil }

// NewWalker returns a walker over u's process. Use one for each goroutine.
func (u *Unwinder) NewWalker() *Walker { return nil }

// A Walker walks one stack at a time. It is not safe for concurrent use.
type Walker struct{}

// Start begins a walk at the frame whose registers are regs, with the
// return addresses in hijacks read as what they really are. It reports false,
// and Stop says why, if there is no frame to begin with.
func (w *Walker) Start(regs *arch.Regs, exact bool, hijacks []Hijack) bool { return false }

// Resume goes on, after the walk ended or in its midst, at a frame that was
// found otherwise, by. The limits of the walk go on counting.
func (w *Walker) Resume(regs *arch.Regs, exact bool, by By) bool { return false }

// Next moves to the caller, or ends the walk.
func (w *Walker) Next() bool { return false }

// Frame returns the frame the walk is at.
func (w *Walker) Frame() Frame { return Frame{} }

// Regs returns the registers of that frame; they change with Next.
func (w *Walker) Regs() *arch.Regs { return nil }

// Stop says why Next returned false.
func (w *Walker) Stop() Stop { return Stop{} }

// Walk appends the frames of the stack that starts at regs to dst.
func (w *Walker) Walk(dst []Frame, regs *arch.Regs) ([]Frame, Stop) { return dst, Stop{} }
