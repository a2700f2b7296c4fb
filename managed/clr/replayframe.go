package clr

import "github.com/seamwalk/seam/arch"

// replayFrames is what the runtime's walk asks of a Frame besides the registers
// that it restores. Offsets that no descriptor of .NET 10 has are those of its
// src/coreclr/vm/frames.h: the fields that follow the ones it does have.
type replayFrames struct {
	Datum      int `c:"InlinedCallFrame.Datum"`
	Method     int `c:"FramedMethodFrame.MethodDescPtr"`
	StubTable  int `c:"StubDispatchFrame.RepresentativeMTPtr"`
	EvalPtr    int `c:"FuncEvalFrame.DebuggerEvalPtr"`
	EvalCtx    int `c:"DebuggerEval.TargetContext"`
	EvalInExcp int `c:"DebuggerEval.EvalDuringException,optional"`
}

// inlinedMarkers are the low bits of an InlinedCallFrame's Datum: 1 is a
// target of calli, 2 marks the Frame of an exception helper.
const inlinedMarkers = 3

// FrameAt reads the Frame at a; missing is the address of the word that the
// dump lacks of it, or 0.
func (p *Replay) FrameAt(a arch.Addr) (f Frame, missing arch.Addr) {
	f, ok := p.r.frameAt(a)
	if ok {
		return f, 0
	}
	l := &p.r.frameLayout
	if _, missing = p.pointer(field(a, l.Identifier)); missing == 0 {
		missing = field(a, l.Next)
	}
	return f, missing
}

// KnowsFrames reports whether a Frame of no known class is of none that this program
// knows: in a release that tells them by their vtables the dump may lack one of those.
func (p *Replay) KnowsFrames() bool { return len(p.r.frameKinds) > 0 && !p.r.framesLost }

// HasMethod reports whether f carries a MethodDesc, which makes the runtime's
// walk stop at it (Frame::GetFunction of src/coreclr/vm/frames.h). missing is the
// address of the word without which that is not known, or 0.
func (p *Replay) HasMethod(f Frame) (is bool, missing arch.Addr) {
	var v arch.Addr
	switch f.Kind {
	case InlinedCallFrame:
		if v, missing = p.pointer(field(f.Addr, p.r.frameLayout.InlinedRA)); v == 0 {
			return false, missing // in no call
		}
		v, missing = p.pointer(field(f.Addr, p.r.replayFrames.Datum))
		return v != 0 && v&inlinedMarkers == 0, missing
	case HelperMethodFrame, HelperMethodFrame1, HelperMethodFrame2, HelperMethodFrame3, HelperMethodFrameProtect:
		return p.helperMethod(f)
	case PrestubMethodFrame, CallCountingHelperFrame, ExternalMethodFrame, CLRToCOMMethodFrame, ComPrestubMethodFrame:
		v, missing = p.pointer(field(f.Addr, p.r.replayFrames.Method))
	case StubDispatchFrame:
		// Where the method is not resolved yet it is found by its slot in a
		// representative class.
		if v, missing = p.pointer(field(f.Addr, p.r.replayFrames.Method)); v == 0 {
			if table, lost := p.pointer(field(f.Addr, p.r.replayFrames.StubTable)); table != 0 {
				return true, 0
			} else if missing == 0 {
				missing = lost
			}
		}
	}
	return v != 0, missing
}

// Resumable reports whether the frame that f leads to was interrupted and is
// to go on there: a walk of a thread that the operating system suspended fails
// at such a Frame.
func (p *Replay) Resumable(f Frame) bool {
	switch f.Kind {
	case ResumableFrame, RedirectedThreadFrame, FuncEvalFrame:
		return true
	case HijackFrame:
		return p.r.release.hijackResumes
	}
	return false
}

// ContextOf returns where the CONTEXT lies that f restores as a whole, its
// flags too; 0 if f restores none. If the dump lacks a word that leads there,
// missing is that word's address. The Frame of a managed throw holds a CONTEXT
// as well, and restores what calls preserve.
func (p *Replay) ContextOf(f Frame) (ctx, missing arch.Addr) {
	l := &p.r.frameLayout
	switch f.Kind {
	case FaultingExceptionFrame:
		return field(f.Addr, l.FaultContext), 0
	case ResumableFrame, RedirectedThreadFrame:
		return p.pointer(field(f.Addr, l.ResumableCtx))
	case FuncEvalFrame:
		eval, missing := p.pointer(field(f.Addr, p.r.replayFrames.EvalPtr))
		if eval == 0 {
			return 0, missing
		}
		// An evaluation during an exception did not interrupt the thread.
		if p.r.replayFrames.EvalInExcp >= 0 {
			at := field(eval, p.r.replayFrames.EvalInExcp)
			if b, ok := p.r.u8(at); !ok {
				return 0, at
			} else if b != 0 {
				return 0, 0
			}
		}
		return field(eval, p.r.replayFrames.EvalCtx), 0
	}
	return 0, 0
}

// pointer reads the pointer at a; missing is a where the dump lacks it.
func (p *Replay) pointer(a arch.Addr) (to, missing arch.Addr) {
	v, ok := p.r.word(a)
	if !ok {
		return 0, a
	}
	return arch.Addr(v), 0
}

// UpdateRegs sets in regs what f restores, as Frame::UpdateRegDisplay does:
// registers that f has not saved keep what they hold. It returns the pc that f
// leads to, 0 if it leads to no other frame. If the dump lacks a word that the
// runtime would have read for this, missing is that word's address; pc is then 0
// where that is not known.
func (p *Replay) UpdateRegs(f Frame, regs *arch.Regs) (pc, missing arch.Addr) {
	if f.Kind == ComMethodFrame {
		return 0, 0 // its return address is native: nothing is taken from it
	}
	ctx, missing := p.ContextOf(f)
	if missing != 0 {
		return 0, missing
	}
	var got arch.Regs
	restore := frameRestore{r: p.r, regs: &got}
	if ctx != 0 {
		restore.context(ctx, ^arch.RegSet(0))
	} else {
		restore.frame(f)
	}
	for set := got.Known(); set != 0; set &= set - 1 {
		reg := lowest(set)
		v, _ := got.Get(reg)
		regs.Set(reg, v)
	}
	v, _ := got.Get(p.r.arch.PC)
	return arch.Addr(v), restore.missing
}

// lowest returns the lowest register of a set that is not empty.
func lowest(set arch.RegSet) arch.Reg {
	for r := arch.Reg(0); ; r++ {
		if set.Has(r) {
			return r
		}
	}
}
