package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// A frameChain goes through a thread's explicit Frames, from the newest on.
type frameChain struct {
	frame  clr.Frame // that it is at
	passed int       // Frames so far
	end    bool      // no Frame is left, or none that can be read
	lost   arch.Addr // the word of a Frame that the dump lacks, or 0
	turned arch.Addr // the Frame at which the chain turns back, or 0
}

// begin turns to the Frame at a.
func (c *frameChain) begin(rp *clr.Replay, a arch.Addr) {
	if c.end = a == code.EndOfFrames; c.end {
		return
	}
	var missing arch.Addr
	if c.frame, missing = rp.FrameAt(a); missing != 0 {
		c.lost, c.end = missing, true
	}
}

// next turns to the Frame behind. A Frame lies above all newer ones; a chain that
// turns back is broken, and ends.
func (c *frameChain) next(rp *clr.Replay) {
	if at := c.frame.Next; at > c.frame.Addr && c.passed < code.MaxChain {
		c.passed++
		c.begin(rp, at)
		return
	}
	c.turned, c.end = c.frame.Addr, true
}
