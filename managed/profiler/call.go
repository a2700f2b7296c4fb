package profiler

import (
	"errors"

	"github.com/seamwalk/seam/arch"
)

// A Call is one call of a StackSnapshotCallback. What it refers to is valid
// until the callback returns.
type Call struct {
	Function    FunctionID // 0 for a run of native frames
	IP          arch.Addr
	ContextSize uint32 // sizeof(CONTEXT) of the runtime, or 0 without COR_PRF_SNAPSHOT_REGISTER_CONTEXT
	ClientData  any

	owner *Snapshotter
	gen   uint64
}

// ErrCallOver is the error of using a Call after its callback has returned.
var ErrCallOver = errors.New("the callback that this belongs to has returned: its frame info and context were the walker's own")

// Context returns the CONTEXT that the callback is given, nil without
// COR_PRF_SNAPSHOT_REGISTER_CONTEXT. Of its registers the pc, the stack and
// frame pointers and those that calls preserve can be relied on, except that a
// frame which called native code directly has only the first three.
func (c *Call) Context() ([]byte, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return nil, ErrCallOver
	}
	if c.ContextSize == 0 {
		return nil, nil
	}
	return c.owner.buf, nil
}

// Registers returns the registers of the CONTEXT that the callback is given. They
// are there without COR_PRF_SNAPSHOT_REGISTER_CONTEXT too.
func (c *Call) Registers() (*arch.Regs, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return nil, ErrCallOver
	}
	return c.owner.shown, nil
}

// A FrameInfo is what a COR_PRF_FRAME_INFO points to (the runtime's
// _COR_PRF_FRAME_INFO_INTERNAL, src/coreclr/vm/proftoeeinterfaceimpl.h).
type FrameInfo struct {
	Size, Version uint16
	Function      FunctionID
	IP            arch.Addr
	// ExtraArg and ThisArg are always 0 in a stack snapshot. So the exact
	// instantiation of shared code, as List<string>.Add of List<__Canon>.Add, cannot
	// be had from them.
	ExtraArg, ThisArg arch.Addr
}

const (
	frameInfoSize    = 40 // with 8-byte pointers
	frameInfoVersion = 1
)

// FrameInfo returns what the callback's frame info points to.
func (c *Call) FrameInfo() (FrameInfo, error) {
	if c.owner == nil || c.owner.gen != c.gen {
		return FrameInfo{}, ErrCallOver
	}
	return FrameInfo{Size: frameInfoSize, Version: frameInfoVersion, Function: c.Function, IP: c.IP}, nil
}

// A Callback is a profiler's StackSnapshotCallback. Any answer but S_OK ends
// the walk.
type Callback func(Call) HRESULT
