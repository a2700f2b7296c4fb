package clr

import (
	"encoding/json"
	"sync"
)

// The CONTEXT that a profiler's callback is given differs by CPU, OS and release.
// Its rows are layouts/contexts.json, because no CPU is named in Go code outside of
// package arch: a row per CPU, and in it a size per OS and release, with where it
// was seen.

// A ContextLayout is what there is to know of a runtime's CONTEXT besides where
// registers lie, which arch has.
type ContextLayout struct {
	Arch    string
	FlagsAt int    `json:"flags_at"` // ContextFlags, 4 bytes
	Whole   uint32 // ContextFlags of a CONTEXT with all integer and control registers
	Unwound uint32 // CONTEXT_UNWOUND_TO_CALL, which unwinding sets; 0 where it does not
	XState  uint32 // CONTEXT_XSTATE, which is lost when a Frame's CONTEXT is copied; 0 where it is not
	Base    int    // bytes of the CONTEXT that every build has, Windows' own
	Size    int    // sizeof(CONTEXT) of this runtime's build
	Sizes   []struct {
		OS    string
		Since int // major version
		Size  int
	}
	// Syscalls are the instructions that call the system: how they begin, in
	// hex, and their size. The second one of x86-64, a call through a fixed
	// address, is wine's.
	Syscalls []struct {
		Begin string
		Size  int
	}
	// Argument is the register of a system call's first argument on Linux.
	Argument string
}

// contextLayouts is layouts/contexts.json: what callbacks of the versions
// named in it were given, the newest first.
var contextLayouts = sync.OnceValue(func() (rows []ContextLayout) {
	// The table is part of the program: TestContextLayouts reads all of it.
	text, _ := layouts.ReadFile("layouts/contexts.json")
	_ = json.Unmarshal(text, &rows)
	return rows
})

// Context returns the layout of this runtime's CONTEXT: on Windows the
// operating system's, elsewhere the PAL's, which grew with the versions; ok is
// false for a CPU without one.
func (p *Replay) Context() (l ContextLayout, ok bool) {
	for _, l = range contextLayouts() {
		ok = ok || l.Arch == p.r.arch.Name
		if ok {
			break
		}
	}
	if !p.r.release.losesXState {
		l.XState = 0
	}
	for _, s := range l.Sizes {
		if l.Size == 0 && s.OS == p.r.proc.ABI.OS && p.r.major() >= s.Since {
			l.Size = s.Size
		}
	}
	// A descriptor that lays out the Frame of a managed throw knows better: the
	// CONTEXT is that Frame's last field.
	size, ok1 := p.r.data.offsets["SoftwareExceptionFrame.!"]
	at, ok2 := p.r.data.offsets["SoftwareExceptionFrame.TargetContext"]
	if ok1 && ok2 && size-at >= l.Base {
		l.Size = size - at
	}
	l.Size = max(l.Size, l.Base)
	return l, ok
}
