package clr

import "github.com/seamwalk/seam/arch"

// helperLayout is where the Frame of a function of the runtime that managed code
// calls (HelperMethodFrame, until .NET 9) has its fields, and where its lazy
// machine state has what it holds (src/coreclr/vm/frames.h and gmscpu.h of 8.0 and
// 9.0). Later releases have no such Frame, and no layout of it.
type helperLayout struct {
	Method  int `c:"HelperMethodFrame.MethodDescPtr,optional"`
	Attribs int `c:"HelperMethodFrame.FrameAttribs,optional"`
	Entry   int `c:"HelperMethodFrame.FCallEntry,optional"`
	State   int `c:"HelperMethodFrame.MachState,optional"`

	PC        int `c:"LazyMachState.PC,optional"`
	SP        int `c:"LazyMachState.SP,optional"`
	Captured  int `c:"LazyMachState.Captured,optional"`
	Pointers  int `c:"LazyMachState.Pointers,optional"`
	RetAddr   int `c:"LazyMachState.RetAddr,optional"` // 0 until the state is unwound
	Unwound   int `c:"LazyMachState.Unwound,optional"`
	CapturePC int `c:"LazyMachState.CapturePC,optional"`
	CaptureSP int `c:"LazyMachState.CaptureSP,optional"`

	saved []arch.Field // registers of each of the blocks
}

// helperFields finds the layout of helpers' Frames; nil if the release has none, or
// if it is not known as a whole.
func helperFields(c *contract, a *arch.Arch) *helperLayout {
	l := new(helperLayout)
	c.fill(l)
	for reg := range a.Names {
		if off, ok := c.offsets["MachStateRegisters."+savedName(a.Names[reg])]; ok {
			l.saved = append(l.saved, arch.Field{Reg: arch.Reg(reg), Off: off})
		}
	}
	for _, off := range [...]int{l.Method, l.Attribs, l.Entry, l.State, l.PC, l.SP, l.Captured, l.Pointers, l.RetAddr, l.Unwound, l.CapturePC, l.CaptureSP} {
		if off < 0 || len(l.saved) == 0 {
			return nil
		}
	}
	return l
}

// Attributes of a helper's Frame (Frame::FRAME_ATTR_* of src/coreclr/vm/frames.h of
// 8.0 and 9.0): how far the function that set it up is from its managed caller.
const (
	helperDepth2     = 0x10 // two calls
	helperExactDepth = 0x20 // one call, or two, even without an entry
)

// A LazyState is what the Frame of a helper has captured of the function that
// set it up. The registers of the managed caller are found by leaving native
// frames from there, which the runtime does when it first needs them.
type LazyState struct {
	Regs arch.Regs // in the function that set the Frame up, at a return address
	// Depth is the number of frames to leave; 0 means all, up to managed code.
	Depth int
}

// Lazy reads in s what f has captured, and reports whether f is a helper's Frame
// whose caller has not been found yet. missing is the address of the word without
// which that cannot be said, or that is missing of s, or 0.
func (p *Replay) Lazy(f Frame, s *LazyState) (lazy bool, missing arch.Addr) {
	l := p.r.helpers
	if l == nil || !f.Kind.helper() {
		return false, 0
	}
	state := field(f.Addr, l.State)
	if v, missing := p.pointer(field(state, l.RetAddr)); v != 0 || missing != 0 {
		return false, missing
	}
	s.Regs = arch.Regs{}
	from := frameRestore{r: p.r, regs: &s.Regs}
	a := p.r.arch
	from.set(a.PC, field(state, l.CapturePC))
	if sp, ok := from.word(field(state, l.CaptureSP)); ok {
		if a.LR == arch.NoReg {
			sp += uint64(a.Word) // of the call that captured the registers
		}
		s.Regs.Set(a.SP, sp)
	}
	for _, r := range l.saved {
		from.set(r.Reg, field(state, l.Captured+r.Off))
	}
	attribs, ok := p.r.u32(field(f.Addr, l.Attribs))
	if !ok {
		from.lack(field(f.Addr, l.Attribs))
	}
	entry, _ := from.word(field(f.Addr, l.Entry))
	switch {
	case entry == 0 && attribs&helperExactDepth == 0:
		s.Depth = 0
	case attribs&helperDepth2 != 0:
		s.Depth = 2
	default:
		s.Depth = 1
	}
	return true, from.missing
}

// Saved returns the registers that helpers' Frames restore besides pc and stack
// pointer.
func (p *Replay) Saved() (set arch.RegSet) {
	if l := p.r.helpers; l != nil {
		for _, f := range l.saved {
			set |= arch.Regset(f.Reg)
		}
	}
	return set
}

// helperMethod reports whether f, a helper's Frame, is that of a method: one whose
// code is a function of the runtime (an FCALL), not a helper of the JIT. The Frame
// has its MethodDesc once it has been looked up, together with the caller.
func (p *Replay) helperMethod(f Frame) (is bool, missing arch.Addr) {
	l := p.r.helpers
	if l == nil {
		return false, f.Addr
	}
	v, missing := p.pointer(field(f.Addr, l.State+l.RetAddr))
	if missing != 0 {
		return false, missing
	}
	at := field(f.Addr, l.Entry)
	if v != 0 {
		at = field(f.Addr, l.Method)
	}
	v, missing = p.pointer(at)
	return v != 0, missing
}

// helper restores what the Frame of a helper does whose caller has been found:
// the registers of that. The saved ones lie in slots that the Frame points to, in
// itself or in the frames of the functions in between, and a collection updates
// them there; those without a slot have a copy in the Frame
// (HelperMethodFrame::UpdateRegDisplay of src/coreclr/vm/amd64/cgenamd64.cpp).
func (s *frameRestore) helper(f Frame) {
	l := s.r.helpers
	if l == nil {
		return
	}
	state := field(f.Addr, l.State)
	if v, ok := s.word(field(state, l.RetAddr)); !ok || v == 0 {
		return
	}
	s.set(s.r.arch.PC, field(state, l.PC))
	sp, ok := s.word(field(state, l.SP))
	if !ok {
		return
	}
	s.regs.Set(s.r.arch.SP, sp)
	for _, r := range l.saved {
		at := field(state, l.Pointers+r.Off)
		v, ok := s.word(at)
		if !ok {
			continue
		}
		slot := arch.Addr(v)
		if slot == 0 {
			slot = field(state, l.Unwound+r.Off)
		}
		if slot < f.Addr || slot >= arch.Addr(sp) || slot%arch.Addr(s.r.arch.Word) != 0 {
			s.lack(at)
			continue
		}
		s.set(r.Reg, slot)
	}
}
