package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/unwind"
)

// What follows is how CoreCLR answers what a walk asks of any runtime.

var _ interface {
	code.Runtime
	code.Unwinding
	code.Completing
	code.Listing
	code.Threading
	code.Framing
	code.Replacing
	code.Mapping
	code.Inlining
	code.Throwing
	code.Ending
	code.Naming
} = (*Runtime)(nil)

// Find is Open as the table of runtimes in package managed needs it.
func Find(p *loader.Process) ([]code.Runtime, []loader.Warning) {
	rts, warns := Open(p)
	out := make([]code.Runtime, len(rts))
	for i, r := range rts {
		out[i] = r
	}
	return out, warns
}

// Info says which runtime r is.
func (r *Runtime) Info() code.Info {
	return code.Info{Kind: "coreclr", Version: r.Version, Commit: r.Commit, Image: r.Image, How: r.How, Lacks: slices.Concat(r.Lacks, r.exLacks)}
}

// Lookup says which managed code holds pc. See CodeAt, which says more.
func (r *Runtime) Lookup(pc arch.Addr) (c code.Code, missing arch.Addr) {
	full, missing := r.CodeAt(pc)
	return full.Code, missing
}

// Complete finds the method of c where Lookup did not. See CompleteCode.
func (r *Runtime) Complete(c *code.Code) {
	if c.Method != 0 {
		return
	}
	full := r.again(c)
	*c = full.Code
}

// again returns what only CoreCLR has of c, which Lookup has returned.
func (r *Runtime) again(c *code.Code) Code {
	at := c.Start
	if c.Kind == code.ReadyToRun {
		at = c.Body.Lo // without its method's start it is known by its own
	}
	if at == 0 {
		return Code{Code: *c}
	}
	full, _ := r.CodeAt(at)
	r.CompleteCode(&full)
	return full
}

// Describe names the method of c. See MethodOf.
func (r *Runtime) Describe(c *code.Code) (code.Method, error) {
	if c.Method != 0 {
		m, err := r.MethodAt(c.Method)
		if m.Name == "" && c.Kind == code.ReadyToRun {
			if by, ok := r.entryNamed(c); ok {
				return by, nil
			}
		}
		return m, err
	}
	full := r.again(c)
	return r.MethodOf(&full)
}

// Sources returns what leaves managed code: orphans are asked for first, because
// for Source such a method is a hole.
func (r *Runtime) Sources() []unwind.Known {
	return []unwind.Known{
		{By: unwind.ByPrologue, Source: orphans{r}},
		{By: unwind.ByCodes, Source: r.Source()},
	}
}

// FrameAt reads the explicit Frame at a; ok is false where the dump lacks it.
func (r *Runtime) FrameAt(a arch.Addr) (f code.Frame, ok bool) {
	own, ok := r.frameAt(a)
	return code.Frame{Addr: own.Addr, Next: own.Next, Kind: uint8(own.Kind),
		SavesRegs: own.Kind.savesRegs(), Roughly: own.Kind == InlinedCallFrame}, ok
}

// FrameOf returns f, which FrameAt has returned, as CoreCLR's own.
func FrameOf(f code.Frame) Frame {
	return Frame{Addr: f.Addr, Next: f.Next, Kind: FrameKind(f.Kind)}
}

// Restore sets in regs what f restores. See code.Framing.
func (r *Runtime) Restore(f code.Frame, regs *arch.Regs) (exact, ok bool) {
	return r.restore(FrameOf(f), regs)
}

// TrippedHijack returns, for a HijackFrame, the true return address of the
// hijacked function and the stack pointer behind its return.
func (r *Runtime) TrippedHijack(f code.Frame) (ret, sp arch.Addr, ok bool) {
	return r.trippedHijack(FrameOf(f))
}

// MayBeReplaced reports whether the method of c may have been replaced on the
// stack: it was compiled with patchpoints, or the dump lacks what would say so.
func (r *Runtime) MayBeReplaced(c *code.Code) bool {
	if c.Kind != code.JIT {
		return false
	}
	full, _ := r.CodeAt(c.Start)
	return r.mayBeReplaced(&full)
}

// ILOffset returns the IL offset that the runtime's own stack traces have for pc,
// by the map of its method: 0 in prologues and for code of no IL, the greatest one
// in epilogues. It is not ok for code without a map (stubs), and where the map's
// bytes are missing or not of the form that this runtime writes.
func (r *Runtime) ILOffset(pc arch.PC) (off uint32, ok bool) {
	c, _ := r.CodeAt(pc.Lookup())
	r.CompleteCode(&c)
	return r.ilOffset(&c, pc)
}
