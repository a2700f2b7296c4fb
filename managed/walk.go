package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// A Kind says what a frame is.
type Kind uint8

const (
	Native  Kind = iota
	Managed      // a managed method, an IL stub and a dynamic method among them
	Gap          // frames are missing here; Why says why
)

func (k Kind) String() string { return [...]string{"native", "managed", "gap"}[k] }

// A Frame is one frame of a stack.
type Frame struct {
	Kind Kind
	By   unwind.By
	PC   arch.PC
	SP   arch.Addr
	Code clr.Code    // what managed code, or which stub, the pc lies in; Kind NotManaged for plain native code
	Why  unwind.Stop // of a gap: what the frame before it could not be left for
}

// Options change how stacks are walked. The zero value is fine.
type Options struct {
	MaxFrames int // of one stack; 0: 1,000,000
}

// A Session is a process ready to be walked.
type Session struct {
	Process  *loader.Process
	Runtimes []*clr.Runtime
	Warnings []loader.Warning // what lacked in reading the runtimes
}

// Open finds the runtimes in p and prepares its walks.
func Open(p *loader.Process, opt *Options) (*Session, error) { return nil, nil }

// Thread returns the managed Thread of an OS thread and its runtime, or nil.
func (s *Session) Thread(tid uint32) (*clr.Thread, *clr.Runtime) { return nil, nil }

// RuntimeAt returns the runtime whose managed code or stubs hold a, or nil.
func (s *Session) RuntimeAt(a arch.Addr) *clr.Runtime { return nil }

// A Walker walks one stack at a time; use one for each goroutine.
type Walker struct{}

// NewWalker returns a walker over s.
func (s *Session) NewWalker() *Walker { return nil }

// Walk appends the frames of t's stack to dst, from leaf to root, and says why
// the stack ended.
func (w *Walker) Walk(dst []Frame, t *loader.Thread) ([]Frame, unwind.Stop) {
	return dst, unwind.Stop{}
}
