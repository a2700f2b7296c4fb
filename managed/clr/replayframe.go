package clr

import "github.com/seamwalk/seam/arch"

// replayFrames is what the runtime's walk asks of a Frame besides the registers
// that it restores. Offsets that no descriptor of .NET 10 has are those of its
// src/coreclr/vm/frames.h: the fields that follow the ones it does have.
type replayFrames struct {
	Datum      int `c:"InlinedCallFrame.Datum,16"`
	Method     int `c:"FramedMethodFrame.MethodDescPtr,24"`
	StubTable  int `c:"StubDispatchFrame.RepresentativeMTPtr,32"`
	EvalPtr    int `c:"FuncEvalFrame.DebuggerEvalPtr,24"`
	EvalCtx    int `c:"DebuggerEval.TargetContext,0"`
	EvalInExcp int `c:"DebuggerEval.EvalDuringException,-1"`
	HijackRegs int `c:"HijackArgs.CalleeSavedRegisters,-1"`
}

// inlinedMarkers are the low bits of an InlinedCallFrame's Datum: 1 is a
// target of calli, 2 marks the Frame of an exception helper.
const inlinedMarkers = 3

// HasMethod reports whether f carries a MethodDesc, which makes the runtime's
// walk stop at it (Frame::GetFunction of src/coreclr/vm/frames.h).
func (p *Replay) HasMethod(f Frame) bool {
	nonNull := func(off int) bool {
		v, ok := p.r.word(field(f.Addr, off))
		return ok && v != 0
	}
	switch f.Kind {
	case InlinedCallFrame:
		v, ok := p.r.word(field(f.Addr, p.frames.Datum))
		return ok && v != 0 && v&inlinedMarkers == 0
	case PrestubMethodFrame, CallCountingHelperFrame, ExternalMethodFrame, CLRToCOMMethodFrame, ComPrestubMethodFrame:
		return nonNull(p.frames.Method)
	case StubDispatchFrame:
		// Where the method is not resolved yet it is found by its slot in a
		// representative class.
		return nonNull(p.frames.Method) || nonNull(p.frames.StubTable)
	}
	return false
}

// Resumable reports whether the frame that f leads to was interrupted and is
// to go on there: a walk of a thread that the operating system suspended fails
// at such a Frame.
func (p *Replay) Resumable(f Frame) bool {
	switch f.Kind {
	case ResumableFrame, RedirectedThreadFrame, FuncEvalFrame:
		return true
	case HijackFrame:
		// Not so in the sources of .NET Core 3.1, nor on 8.0 and 9.0, where
		// such walks went on (44 of 44 and 46 of 46); on 10.0 they fail (41 of 41).
		return p.major >= 10 || p.major == 0
	}
	return false
}

// ContextOf returns where the CONTEXT lies that f restores as a whole, its
// flags too; 0 if f restores none, or the dump lacks the pointer to it. The
// Frame of a managed throw holds one as well, and restores what calls preserve.
func (p *Replay) ContextOf(f Frame) arch.Addr {
	l := &p.r.frameLayout
	switch f.Kind {
	case FaultingExceptionFrame:
		return field(f.Addr, l.FaultContext)
	case ResumableFrame, RedirectedThreadFrame:
		v, _ := p.r.word(field(f.Addr, l.ResumableCtx))
		return arch.Addr(v)
	case FuncEvalFrame:
		v, _ := p.r.word(field(f.Addr, p.frames.EvalPtr))
		if v == 0 {
			return 0
		}
		// An evaluation during an exception did not interrupt the thread.
		if p.frames.EvalInExcp >= 0 {
			if b, ok := p.r.u8(field(arch.Addr(v), p.frames.EvalInExcp)); !ok || b != 0 {
				return 0
			}
		}
		return field(arch.Addr(v), p.frames.EvalCtx)
	}
	return 0
}

// UpdateRegs sets in regs what f restores, as Frame::UpdateRegDisplay does:
// registers that f has not saved keep what they hold. It reports false, and
// leaves regs alone, if f leads to no other frame or the dump lacks its bytes.
func (p *Replay) UpdateRegs(f Frame, regs *arch.Regs) bool {
	r := p.r
	if f.Kind == ComMethodFrame {
		return false // its return address is native: nothing is taken from it
	}
	if ctx := p.ContextOf(f); ctx != 0 {
		return p.updateFromContext(ctx, regs)
	}
	var got arch.Regs
	if _, ok := r.Restore(f, &got); !ok {
		return false
	}
	for set := got.Known(); set != 0; set &= set - 1 {
		reg := lowest(set)
		v, _ := got.Get(reg)
		regs.Set(reg, v)
	}
	if f.Kind == HijackFrame {
		p.updateFromHijack(f, regs)
	}
	return true
}

// updateFromContext takes every register of a CONTEXT.
func (p *Replay) updateFromContext(ctx arch.Addr, regs *arch.Regs) bool {
	a := p.r.arch
	var got arch.Regs
	for _, f := range a.Context.Fields {
		if v, ok := p.r.word(field(ctx, f.Off)); ok {
			got.Set(f.Reg, v)
		}
	}
	if known := got.Known(); !known.Has(a.PC) || !known.Has(a.SP) {
		return false
	}
	for set := got.Known(); set != 0; set &= set - 1 {
		reg := lowest(set)
		v, _ := got.Get(reg)
		regs.Set(reg, v)
	}
	return true
}

// updateFromHijack takes the registers that the trip stub saved.
func (p *Replay) updateFromHijack(f Frame, regs *arch.Regs) {
	args, ok := p.r.word(field(f.Addr, p.r.frameLayout.HijackArgs))
	if !ok {
		return
	}
	block, fields := arch.Addr(args), p.r.frameLayout.hijack
	if p.frames.HijackRegs >= 0 {
		block, fields = field(block, p.frames.HijackRegs), p.r.frameLayout.saved
	}
	for _, s := range fields {
		if v, ok := p.r.word(field(block, s.Off)); ok {
			regs.Set(s.Reg, v)
		}
	}
}

// lowest returns the lowest register of a set that is not empty.
func lowest(set arch.RegSet) arch.Reg {
	for r := arch.Reg(0); ; r++ {
		if set.Has(r) {
			return r
		}
	}
}
