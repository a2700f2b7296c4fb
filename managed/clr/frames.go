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
	// Those from here on ended with .NET 9.
	HelperMethodFrame
	HelperMethodFrame1
	HelperMethodFrame2
	HelperMethodFrame3
	HelperMethodFrameProtect
	ProtectByRefsFrame
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
	HelperMethodFrame:            "HelperMethodFrame",
	HelperMethodFrame1:           "HelperMethodFrame_1OBJ",
	HelperMethodFrame2:           "HelperMethodFrame_2OBJ",
	HelperMethodFrame3:           "HelperMethodFrame_3OBJ",
	HelperMethodFrameProtect:     "HelperMethodFrame_PROTECTOBJ",
	ProtectByRefsFrame:           "ProtectByRefsFrame",
}

func (k FrameKind) String() string {
	if k == UnknownFrame || k >= numFrames {
		return "Frame"
	}
	return frameNames[k]
}

// transition reports whether a Frame of this kind has a TransitionBlock to go on
// from.
func (k FrameKind) transition() bool {
	switch k {
	case PrestubMethodFrame, StubDispatchFrame, CallCountingHelperFrame, ExternalMethodFrame,
		DynamicHelperFrame, PInvokeCalliFrame, CLRToCOMMethodFrame:
		return true
	}
	return false
}

// helper reports whether a Frame of this kind is that of a function of the runtime
// that managed code has called.
func (k FrameKind) helper() bool {
	switch k {
	case HelperMethodFrame, HelperMethodFrame1, HelperMethodFrame2, HelperMethodFrame3, HelperMethodFrameProtect:
		return true
	}
	return false
}

// savesRegs reports whether a Frame of this class holds callee-saved registers
// of the managed frame that it leads to.
func (k FrameKind) savesRegs() bool {
	switch k {
	case SoftwareExceptionFrame, FaultingExceptionFrame, ResumableFrame, RedirectedThreadFrame, HijackFrame:
		return true
	}
	return k.transition()
}

// A Frame is one explicit Frame of a thread's chain.
type Frame struct {
	Addr arch.Addr
	Next arch.Addr
	Kind FrameKind
}

type frameLayout struct {
	Identifier int `c:"Frame.Identifier"`
	Next       int `c:"Frame.Next"`

	InlinedSP int `c:"InlinedCallFrame.CallSiteSP"`
	InlinedRA int `c:"InlinedCallFrame.CallerReturnAddress"`
	InlinedFP int `c:"InlinedCallFrame.CalleeSavedFP"`

	TransitionPtr  int `c:"FramedMethodFrame.TransitionBlockPtr"`
	TransitionSize int `c:"TransitionBlock.!"`
	TransitionRA   int `c:"TransitionBlock.ReturnAddress"`
	TransitionRegs int `c:"TransitionBlock.CalleeSavedRegisters"`

	SoftwareRA      int `c:"SoftwareExceptionFrame.ReturnAddress,optional"`
	SoftwareContext int `c:"SoftwareExceptionFrame.TargetContext"`
	FaultContext    int `c:"FaultingExceptionFrame.TargetContext"`
	ResumableCtx    int `c:"ResumableFrame.TargetContextPtr"`

	HijackRA       int `c:"HijackFrame.ReturnAddress"`
	HijackArgs     int `c:"HijackFrame.HijackArgsPtr"`
	HijackArgsSize int `c:"HijackArgs.!"`
	HijackRegs     int `c:"HijackArgs.CalleeSavedRegisters,optional"`

	saved  []arch.Field // registers of CalleeSavedRegisters
	hijack []arch.Field // registers that HijackArgs has by name (ARM64)
	// softwarePointers is where a SoftwareExceptionFrame has its context
	// pointers; -1 if that is not known.
	softwarePointers int
}

// contextAlign is the alignment of a CONTEXT (src/coreclr/pal/inc/pal.h).
const contextAlign = 16

// registers finds the fields that are named for registers, and the context
// pointers of a SoftwareExceptionFrame, which no descriptor names: they are all
// that lies between its return address and its CONTEXT (src/coreclr/vm/frames.h).
func (l *frameLayout) registers(c *contract, a *arch.Arch) {
	l.softwarePointers = l.SoftwareRA + a.Word
	if end := l.softwarePointers + a.ContextPointers.Size; l.SoftwareRA < 0 || (end+contextAlign-1)&^(contextAlign-1) != l.SoftwareContext {
		l.softwarePointers = -1
	}
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

// frameAt reads the Frame at a; ok is false where the dump lacks it.
func (r *Runtime) frameAt(a arch.Addr) (f Frame, ok bool) {
	l := &r.frameLayout
	id, ok1 := r.word(field(a, l.Identifier))
	next, ok2 := r.word(field(a, l.Next))
	return Frame{Addr: a, Next: arch.Addr(next), Kind: r.frameKinds[id]}, ok1 && ok2
}

// restore sets in regs what f restores: at least the pc and the stack pointer
// of the frame that f leads to, and whichever other registers f has saved;
// those it has not are not known. exact reports whether that frame was
// interrupted rather than calling; ok is false if f leads nowhere, or the dump
// lacks its bytes.
func (r *Runtime) restore(f Frame, regs *arch.Regs) (exact, ok bool) {
	*regs = arch.Regs{}
	from := frameRestore{r: r, regs: regs}
	exact = from.frame(f)
	_, pc := regs.Get(r.arch.PC)
	_, sp := regs.Get(r.arch.SP)
	return exact, pc && sp
}

// A frameRestore sets in regs what a Frame restores.
type frameRestore struct {
	r       *Runtime
	regs    *arch.Regs
	missing arch.Addr // the first word of it that the dump lacks, 0 if it has all
}

// word reads a word of the process.
func (s *frameRestore) word(a arch.Addr) (uint64, bool) {
	v, ok := s.r.word(a)
	if !ok {
		s.lack(a)
	}
	return v, ok
}

// lack notes that the word at a is missing, or cannot be what it should be.
func (s *frameRestore) lack(a arch.Addr) {
	if s.missing == 0 {
		s.missing = a
	}
}

// set sets a register to the word at a.
func (s *frameRestore) set(reg arch.Reg, a arch.Addr) {
	if v, ok := s.word(a); ok {
		s.regs.Set(reg, v)
	}
}

// frame restores what f does; exact as for Restore. It leaves pc or stack
// pointer out if f leads nowhere.
func (s *frameRestore) frame(f Frame) (exact bool) {
	r := s.r
	l := &r.frameLayout
	switch f.Kind {
	case InlinedCallFrame:
		// A return address of 0 marks a frame that is set up and in no call.
		if ra, ok := s.word(field(f.Addr, l.InlinedRA)); ok && ra != 0 {
			s.regs.Set(r.arch.PC, ra)
			s.set(r.arch.SP, field(f.Addr, l.InlinedSP))
			s.set(r.arch.FP, field(f.Addr, l.InlinedFP))
		}
	case SoftwareExceptionFrame:
		s.software(f)
	case FaultingExceptionFrame:
		s.context(field(f.Addr, l.FaultContext), ^arch.RegSet(0))
		return true
	case ResumableFrame, RedirectedThreadFrame:
		if ctx, ok := s.word(field(f.Addr, l.ResumableCtx)); ok {
			s.context(arch.Addr(ctx), ^arch.RegSet(0))
		}
		return true
	case HijackFrame:
		s.hijack(f)
	case HelperMethodFrame, HelperMethodFrame1, HelperMethodFrame2, HelperMethodFrame3, HelperMethodFrameProtect:
		s.helper(f)
	default:
		if f.Kind.transition() {
			s.transition(f)
		}
	}
	return false
}

// hijack reads the true return address of a function whose return the runtime
// has hijacked, and what the stub that it returned to has pushed: HijackArgs,
// with the callee-saved registers.
func (s *frameRestore) hijack(f Frame) {
	l := &s.r.frameLayout
	v, ok := s.word(field(f.Addr, l.HijackArgs))
	if !ok {
		return
	}
	args := arch.Addr(v)
	block, fields := args, l.hijack
	if l.HijackRegs >= 0 {
		block, fields = field(args, l.HijackRegs), l.saved
	}
	for _, f := range fields {
		s.set(f.Reg, field(block, f.Off))
	}
	s.set(s.r.arch.PC, field(f.Addr, l.HijackRA))
	s.regs.Set(s.r.arch.SP, uint64(args+arch.Addr(l.HijackArgsSize)+7)&^7)
}

// transition reads a TransitionBlock, which the stubs that call into the
// runtime push: the callee-saved registers and the return address.
func (s *frameRestore) transition(f Frame) {
	l := &s.r.frameLayout
	v, ok := s.word(field(f.Addr, l.TransitionPtr))
	if !ok {
		return
	}
	block := arch.Addr(v)
	for _, f := range l.saved {
		s.set(f.Reg, field(block, l.TransitionRegs+f.Off))
	}
	s.set(s.r.arch.PC, field(block, l.TransitionRA))
	s.regs.Set(s.r.arch.SP, uint64(field(block, l.TransitionSize)))
}

// savedName spells a register as the descriptor does: Rbx, R12, X19, Fp.
func savedName(reg string) string { return string(reg[0]-'a'+'A') + reg[1:] }

// context reads pc, sp and the registers in set from a CONTEXT.
func (s *frameRestore) context(ctx arch.Addr, set arch.RegSet) {
	a := s.r.arch
	set |= arch.Regset(a.PC, a.SP)
	for _, f := range a.Context.Fields {
		if set.Has(f.Reg) {
			s.set(f.Reg, field(ctx, f.Off))
		}
	}
}

// software restores what the Frame of a managed throw does: pc and stack
// pointer of its CONTEXT, and the callee-saved registers out of the slots that
// its context pointers lead to, in the frame of the helper that threw. The
// CONTEXT has copies of those, and a collection updates the slots only
// (SoftwareExceptionFrame::UpdateRegDisplay of .NET 10, src/coreclr/vm/excep.cpp).
func (s *frameRestore) software(f Frame) {
	a, l := s.r.arch, &s.r.frameLayout
	saved := s.r.proc.ABI.CalleeSaved
	ctx := field(f.Addr, l.SoftwareContext)
	if l.softwarePointers < 0 {
		s.context(ctx, saved)
		return
	}
	s.context(ctx, 0)
	sp, ok := s.regs.Get(a.SP)
	if !ok {
		return
	}
	if a.LR != arch.NoReg {
		saved |= arch.Regset(a.LR)
	}
	for _, p := range a.ContextPointers.Fields {
		if !saved.Has(p.Reg) {
			continue
		}
		at := field(f.Addr, l.softwarePointers+p.Off)
		v, ok := s.word(at)
		if !ok {
			continue
		}
		slot := arch.Addr(v)
		if slot == 0 { // no slot: the CONTEXT's is the register's only copy
			slot = field(ctx, contextOffset(a, p.Reg))
		}
		// The helper's frame has the slots, and this Frame in it.
		if slot < f.Addr || slot >= arch.Addr(sp) || slot%arch.Addr(a.Word) != 0 {
			s.lack(at)
			continue
		}
		s.set(p.Reg, slot)
	}
}

// contextOffset returns where a register lies in a CONTEXT.
func contextOffset(a *arch.Arch, reg arch.Reg) int {
	for _, f := range a.Context.Fields {
		if f.Reg == reg {
			return f.Off
		}
	}
	return 0
}

// trippedHijack returns, for a HijackFrame, the true return address of the
// hijacked function and the stack pointer behind its return. The trip stub was
// entered by a return instruction, so that unwind information, which takes it
// for a called function, is off by one slot: it looks for the stub's return
// address at that very stack pointer.
func (r *Runtime) trippedHijack(f Frame) (ret, sp arch.Addr, ok bool) {
	var regs arch.Regs
	if f.Kind != HijackFrame {
		return 0, 0, false
	}
	if _, ok := r.restore(f, &regs); !ok {
		return 0, 0, false
	}
	pc, _ := regs.Get(r.arch.PC)
	top, _ := regs.Get(r.arch.SP)
	return arch.Addr(pc), arch.Addr(top), true
}
