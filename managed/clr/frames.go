package clr

import "github.com/seamwalk/seam/arch"

// A FrameKind is the class of an explicit Frame (src/coreclr/vm/frames.h).
type FrameKind uint8

const (
	UnknownFrame FrameKind = iota
	InlinedCallFrame
	ResumableFrame
	RedirectedThreadFrame
	FaultingExceptionFrame
	SoftwareExceptionFrame
	FuncEvalFrame
	PInvokeCalliFrame
	HijackFrame
	PrestubMethodFrame
	CallCountingHelperFrame
	StubDispatchFrame
	ExternalMethodFrame
	DynamicHelperFrame
	ProtectValueClassFrame
	DebuggerClassInitMarkFrame
	DebuggerExitFrame
	DebuggerU2MCatchHandlerFrame
	ExceptionFilterFrame
	CLRToCOMMethodFrame
	ComMethodFrame
	ComPrestubMethodFrame
	numFrames
)

var frameNames = [numFrames]string{
	InlinedCallFrame:             "InlinedCallFrame",
	ResumableFrame:               "ResumableFrame",
	RedirectedThreadFrame:        "RedirectedThreadFrame",
	FaultingExceptionFrame:       "FaultingExceptionFrame",
	SoftwareExceptionFrame:       "SoftwareExceptionFrame",
	FuncEvalFrame:                "FuncEvalFrame",
	PInvokeCalliFrame:            "PInvokeCalliFrame",
	HijackFrame:                  "HijackFrame",
	PrestubMethodFrame:           "PrestubMethodFrame",
	CallCountingHelperFrame:      "CallCountingHelperFrame",
	StubDispatchFrame:            "StubDispatchFrame",
	ExternalMethodFrame:          "ExternalMethodFrame",
	DynamicHelperFrame:           "DynamicHelperFrame",
	ProtectValueClassFrame:       "ProtectValueClassFrame",
	DebuggerClassInitMarkFrame:   "DebuggerClassInitMarkFrame",
	DebuggerExitFrame:            "DebuggerExitFrame",
	DebuggerU2MCatchHandlerFrame: "DebuggerU2MCatchHandlerFrame",
	ExceptionFilterFrame:         "ExceptionFilterFrame",
	CLRToCOMMethodFrame:          "CLRToCOMMethodFrame",
	ComMethodFrame:               "ComMethodFrame",
	ComPrestubMethodFrame:        "ComPrestubMethodFrame",
}

func (k FrameKind) String() string {
	if k == UnknownFrame || k >= numFrames {
		return "Frame"
	}
	return frameNames[k]
}

// A Frame is one explicit Frame of a thread's chain.
type Frame struct {
	Addr arch.Addr
	Next arch.Addr
	Kind FrameKind
}

// EndOfFrames is the Next of the last Frame, FRAME_TOP.
const EndOfFrames = ^arch.Addr(0)

type frameLayout struct {
	Identifier int `c:"Frame.Identifier,0"`
	Next       int `c:"Frame.Next"`

	InlinedSP int `c:"InlinedCallFrame.CallSiteSP"`
	InlinedRA int `c:"InlinedCallFrame.CallerReturnAddress"`
	InlinedFP int `c:"InlinedCallFrame.CalleeSavedFP"`

	TransitionPtr  int `c:"FramedMethodFrame.TransitionBlockPtr"`
	TransitionSize int `c:"TransitionBlock.!"`
	TransitionRA   int `c:"TransitionBlock.ReturnAddress"`
	TransitionRegs int `c:"TransitionBlock.CalleeSavedRegisters"`

	SoftwareContext int `c:"SoftwareExceptionFrame.TargetContext"`
	FaultContext    int `c:"FaultingExceptionFrame.TargetContext"`
	ResumableCtx    int `c:"ResumableFrame.TargetContextPtr"`

	HijackRA       int `c:"HijackFrame.ReturnAddress"`
	HijackArgs     int `c:"HijackFrame.HijackArgsPtr"`
	HijackArgsSize int `c:"HijackArgs.!"`

	saved  []arch.Field // registers of CalleeSavedRegisters
	hijack []arch.Field // registers that HijackArgs has by name (ARM64)
}

// registers finds the fields that are named for registers.
func (l *frameLayout) registers(c *contract, a *arch.Arch) {
	for reg := range a.Names {
		name := savedName(a.Names[reg])
		if off, ok := c.offsets["CalleeSavedRegisters."+name]; ok {
			l.saved = append(l.saved, arch.Field{Reg: arch.Reg(reg), Off: off})
		}
		if off, ok := c.offsets["HijackArgs."+name]; ok {
			l.hijack = append(l.hijack, arch.Field{Reg: arch.Reg(reg), Off: off})
		}
	}
}

// FrameAt reads the Frame at a; ok is false where the dump lacks it.
func (r *Runtime) FrameAt(a arch.Addr) (f Frame, ok bool) {
	l := &r.frameLayout
	id, ok1 := r.word(field(a, l.Identifier))
	next, ok2 := r.word(field(a, l.Next))
	return Frame{Addr: a, Next: arch.Addr(next), Kind: r.frameKinds[id]}, ok1 && ok2
}

// Restore sets in regs what f restores: at least the pc and the stack pointer
// of the frame that f leads to, and whichever other registers f has saved;
// those it has not are not known. exact reports whether that frame was
// interrupted rather than calling; ok is false if f leads nowhere, or the dump
// lacks its bytes.
func (r *Runtime) Restore(f Frame, regs *arch.Regs) (exact, ok bool) {
	*regs = arch.Regs{}
	l := &r.frameLayout
	switch f.Kind {
	case InlinedCallFrame:
		ra, ok1 := r.word(field(f.Addr, l.InlinedRA))
		sp, ok2 := r.word(field(f.Addr, l.InlinedSP))
		// A return address of 0 marks a frame that is set up and in no call.
		if !ok1 || !ok2 || ra == 0 {
			return false, false
		}
		regs.Set(r.arch.PC, ra)
		regs.Set(r.arch.SP, sp)
		if fp, ok := r.word(field(f.Addr, l.InlinedFP)); ok {
			regs.Set(r.arch.FP, fp)
		}
		return false, true
	case PrestubMethodFrame, StubDispatchFrame, CallCountingHelperFrame, ExternalMethodFrame,
		DynamicHelperFrame, PInvokeCalliFrame, CLRToCOMMethodFrame:
		return false, r.restoreTransition(f, regs)
	case SoftwareExceptionFrame:
		return false, r.restoreContext(field(f.Addr, l.SoftwareContext), r.arch.CalleeSaved, regs)
	case FaultingExceptionFrame:
		return true, r.restoreContext(field(f.Addr, l.FaultContext), ^arch.RegSet(0), regs)
	case ResumableFrame, RedirectedThreadFrame:
		ctx, ok := r.word(field(f.Addr, l.ResumableCtx))
		return true, ok && r.restoreContext(arch.Addr(ctx), ^arch.RegSet(0), regs)
	case HijackFrame:
		ra, ok1 := r.word(field(f.Addr, l.HijackRA))
		args, ok2 := r.word(field(f.Addr, l.HijackArgs))
		if !ok1 || !ok2 {
			return false, false
		}
		regs.Set(r.arch.PC, ra)
		regs.Set(r.arch.SP, uint64(r.hijackSP(arch.Addr(args))))
		return false, true
	}
	return false, false
}

// hijackSP returns the stack pointer behind the HijackArgs at args.
func (r *Runtime) hijackSP(args arch.Addr) arch.Addr {
	return (args + arch.Addr(r.frameLayout.HijackArgsSize) + 7) &^ 7
}

// restoreTransition reads a TransitionBlock, which the stubs that call into
// the runtime push: the callee-saved registers and the return address.
func (r *Runtime) restoreTransition(f Frame, regs *arch.Regs) bool {
	l := &r.frameLayout
	v, ok := r.word(field(f.Addr, l.TransitionPtr))
	if !ok {
		return false
	}
	block := arch.Addr(v)
	ra, ok := r.word(field(block, l.TransitionRA))
	if !ok {
		return false
	}
	for _, f := range l.saved {
		if v, ok := r.word(field(block, l.TransitionRegs+f.Off)); ok {
			regs.Set(f.Reg, v)
		}
	}
	regs.Set(r.arch.PC, ra)
	regs.Set(r.arch.SP, uint64(field(block, l.TransitionSize)))
	return true
}

// savedName spells a register as the descriptor does: Rbx, R12, X19, Fp.
func savedName(reg string) string { return string(reg[0]-'a'+'A') + reg[1:] }

// restoreContext reads pc, sp and the registers in set from a CONTEXT.
func (r *Runtime) restoreContext(ctx arch.Addr, set arch.RegSet, regs *arch.Regs) bool {
	for _, f := range r.arch.Context.Fields {
		if f.Reg != r.arch.PC && f.Reg != r.arch.SP && !set.Has(f.Reg) {
			continue
		}
		v, ok := r.word(field(ctx, f.Off))
		if !ok {
			if f.Reg == r.arch.PC || f.Reg == r.arch.SP {
				return false
			}
			continue
		}
		regs.Set(f.Reg, v)
	}
	return true
}

// TrippedHijack returns, for a HijackFrame, the true return address of the
// hijacked function and the stack pointer behind its return. The trip stub was
// entered by a return instruction, so that unwind information, which takes it
// for a called function, is off by one slot: it looks for the stub's return
// address at that very stack pointer.
func (r *Runtime) TrippedHijack(f Frame) (ret, sp arch.Addr, ok bool) {
	var regs arch.Regs
	if f.Kind != HijackFrame {
		return 0, 0, false
	}
	if _, ok := r.Restore(f, &regs); !ok {
		return 0, 0, false
	}
	pc, _ := regs.Get(r.arch.PC)
	top, _ := regs.Get(r.arch.SP)
	return arch.Addr(pc), arch.Addr(top), true
}
