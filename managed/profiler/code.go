package profiler

import (
	"errors"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// A snapshotCode is what a walk has found out of the code at a pc. The runtime's
// walk looks up the exact pc, where a physical walk looks up the byte in front of a
// return address: a method whose last instruction is a call then ends before the pc.
type snapshotCode struct {
	pc arch.Addr
	shownCode
	rule    arch.Rule
	outcome unwind.Outcome
	why     unwind.Stop
	missing arch.Addr // what the dump lacks to say what lies here
	orphan  bool      // the method's header is missing: how a frame is left depends on its registers
	// behindCall: the rule holds behind a call only. The code is missing from the
	// dump, and without it nobody can say whether the pc is in an epilogue.
	behindCall bool
}

// A shownCode is what decides whether a profiler is shown a frame.
type shownCode struct {
	code       clr.Code
	visibility clr.Visibility
	dispatcher bool
	// hidden is what the dump lacks to say whether the frame is reported,
	// dispatching to say whether it is one of the exception dispatcher.
	hidden, dispatching arch.Addr
}

func (c *snapshotCode) managed() bool { return c.code.Managed() }

// unknown returns what the dump lacks to say whether c is managed code, or 0. In
// ELF images there is none, nor at the null that a walk without a seed begins with.
func (n *Snapshotter) unknown(c *snapshotCode) arch.Addr {
	if c.managed() || c.code.Kind == code.Stub || c.missing == 0 {
		return 0
	}
	if img := n.s.Process.ImageAt(c.pc); img != nil && img.Format == "elf" {
		return 0
	}
	return c.missing
}

// The cache has room for the return addresses of a whole process: a server has
// some hundred. A pc has its place in one of a few neighbouring slots.
const (
	snapshotCache = 1 << 10
	snapshotWays  = 4
)

// lookup says what lies at pc. The answer is good until the next look-up.
func (n *Snapshotter) lookup(pc arch.Addr) *snapshotCode {
	h := uint64(pc) * 0x9e3779b97f4a7c15 >> 32
	c := &n.cache[h%snapshotCache]
	for i := range uint64(snapshotWays) {
		e := &n.cache[(h+i)%snapshotCache]
		if e.pc == pc && pc != 0 {
			return e
		}
		if e.pc == 0 {
			c = e
			break
		}
	}
	*c = snapshotCode{pc: pc}
	if pc == 0 {
		return c // of a walk that has nothing to start from
	}
	if c.code, c.missing = n.rt.CodeAt(pc); !c.managed() {
		return c
	}
	n.rule(c)
	if c.code.Kind == code.ReadyToRun {
		n.rt.CompleteCode(&c.code)
	}
	if c.hidden = c.missing; c.code.Method != 0 {
		c.visibility, c.hidden = n.rp.Visibility(&c.code)
		if c.visibility == clr.Visible {
			c.dispatcher, c.dispatching = n.dispatches(c.code.Method)
		}
	}
	return c
}

// rule finds how the frame at c.pc is left.
func (n *Snapshotter) rule(c *snapshotCode) {
	n.step = unwind.Step{PC: arch.PC{Addr: c.pc, Exact: true}, Mem: n.mem, Arch: n.a}
	c.outcome = n.rt.Source().Unwind(&n.step)
	if c.why = n.step.Why; c.outcome == unwind.Broken && c.why.Reason == unwind.InfoMissing {
		// Behind a call, where nearly all frames are, there is no epilogue.
		if c.code.Body.Has(c.pc - 1) {
			n.step.PC.Exact = false
			c.outcome, c.behindCall = n.rt.Source().Unwind(&n.step), true
		}
	}
	if c.outcome == unwind.UseRule {
		c.rule = n.step.Rule
	} else if c.outcome == unwind.Broken && c.why.Reason == unwind.InfoMissing {
		n.orphan(c)
	}
}

// orphan prepares to do without the header of c's method, which the dump lacks.
func (n *Snapshotter) orphan(c *snapshotCode) {
	if c.code.Kind == code.JIT {
		n.rt.CompleteCode(&c.code)
	}
	// Behind a call, a method is neither in its prologue nor in an epilogue. What a
	// funclet is must be known: the frames up to its method are then hidden.
	c.orphan = c.code.Method != 0 && !c.code.Funclet && n.a.AfterCall(n.mem, c.pc)
}

// dispatches reports whether md is a method of the exception dispatcher. The name of
// its class says so; it is read once for each class. missing is the address of what
// the dump lacks to say so, or 0.
func (n *Snapshotter) dispatches(md arch.Addr) (is bool, missing arch.Addr) {
	mt, missing := n.rp.MethodTable(md)
	if missing != 0 {
		return false, missing
	}
	d, known := n.eh[mt]
	if !known {
		var err error
		if d.is, err = n.rp.Dispatcher(mt); err != nil {
			d.missing = mt
			if lack := (*ecma.Error)(nil); errors.As(err, &lack) {
				d.missing = lack.At
			}
		}
		n.eh[mt] = d
	}
	return d.is, d.missing
}

// A dispatcherClass says whether a class is one of the exception dispatcher, or
// what the dump lacks to say so.
type dispatcherClass struct {
	is      bool
	missing arch.Addr
}
