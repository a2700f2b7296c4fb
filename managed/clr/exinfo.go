package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// An ExInfo is what the runtime keeps of an exception in progress: ExInfo since
// .NET 9, ExceptionTracker before (src/coreclr/vm/exinfo.h, exceptionhandling.h).
type ExInfo struct {
	Addr, Prev arch.Addr // Prev is the exception that this one nests in; 0 if there is none
	Unwinding  bool      // the second pass has started
	Entered    bool      // managed code of the handler that is run has been entered; true if that is not known
	Low, High  arch.Addr // frames that this pass has been over
	// Funclet is the caller's SP of the funclet that was run last. It is not
	// cleared when that returns.
	Funclet   arch.Addr
	Enclosing arch.Addr // caller's SP of the frame whose clause that is
	Filter    bool      // that clause is a filter; false if that is not known
}

// Scanned reports whether any frame has been passed.
func (e *ExInfo) Scanned() bool { return e.Low != ^arch.Addr(0) || e.High != 0 }

// Unwound reports whether the frame whose caller's stack pointer is v, or the Frame
// at v, has been unwound already by e, the newest exception of its thread.
func (p *Replay) Unwound(e *ExInfo, v arch.Addr) bool {
	if p.r.release.callerRanges && p.r.arch.LR != arch.NoReg {
		return e.Unwinding && v >= e.Low && v < e.High
	}
	return e.Unwinding && v > e.Low && v <= e.High
}

// exInfoLayout is where an exception in progress has its fields. The members that
// no descriptor gives are those of ExInfo and of its EHClauseInfo. ExInfoAt checks
// what it reads there before it is used.
type exInfoLayout struct {
	Prev      int `c:"ExceptionInfo.PreviousNestedInfo"`
	Flags     int `c:"ExceptionInfo.ExceptionFlags"`
	Low       int `c:"ExceptionInfo.StackLowBound"`
	High      int `c:"ExceptionInfo.StackHighBound"`
	Funclet   int `c:"ExceptionInfo.CSFEHClause"`
	Enclosing int `c:"ExceptionInfo.CSFEnclosingClause"`
	Entered   int `c:"ExceptionInfo.m_fManagedCodeEntered,optional"`
	Clause    int `c:"ExceptionInfo.m_ClauseType,optional"` // at most maxClause
	// Thread points back to the Thread. An ExInfo has no such field, and lies on
	// the stack.
	Thread int `c:"ExceptionTracker.m_pThread,optional"`
	// .NET 9 keeps trackers in place of ExInfos in a process that asks for the way
	// exceptions were handled before (DOTNET_LegacyExceptionHandling). Those are the
	// fields that a tracker of it has in other places.
	LegacyThread    int `c:"LegacyExceptionTracker.m_pThread,optional"`
	LegacyFunclet   int `c:"LegacyExceptionTracker.CSFEHClause,optional"`
	LegacyEnclosing int `c:"LegacyExceptionTracker.CSFEnclosingClause,optional"`
}

// onStack reports whether exceptions in progress lie on the stack.
func (l *exInfoLayout) onStack() bool { return l.Thread < 0 }

// layExInfo finds where this runtime has the fields: nowhere where its descriptor
// and the row of its release do not give those that say where an exception is. Of a
// release newer than all rows it notes what is not known.
func (r *Runtime) layExInfo() {
	r.exInfo, r.exLacks = new(exInfoLayout), nil
	lacks := r.data.fill(r.exInfo)
	if len(lacks) > 0 {
		r.exInfo = nil
	}
	r.exLegacy = nil
	if l := r.exInfo; l != nil && l.LegacyThread >= 0 && l.LegacyFunclet >= 0 && l.LegacyEnclosing >= 0 {
		legacy := *l
		legacy.Thread, legacy.Funclet, legacy.Enclosing = l.LegacyThread, l.LegacyFunclet, l.LegacyEnclosing
		r.exLegacy = &legacy
	}
	if r.use != ownRow {
		r.exLacks = append(lacks, "whether a handler has been entered", "the kind of its clause")
	}
}

const (
	unwindHasStarted = 4 // ExceptionFlags::Ex_UnwindHasStarted (src/coreclr/vm/exstatecommon.h)
	maxClause        = 3
	filterClause     = 1
)

// KnowsExceptions reports whether it is known of this runtime where it keeps
// what it has of an exception in progress: at all, whether a handler has been
// entered, and of what kind the handler's clause is.
func (p *Replay) KnowsExceptions() (some, entered, clause bool) {
	if p.ex == nil {
		return false, false, false
	}
	return true, p.ex.Entered >= 0, p.ex.Clause >= 0
}

// ExInfoAt reads the exception at a, of thread t. It reports false if the dump
// lacks it, missing then being the address of the first byte, or if what lies
// there is none: half written, or of another layout.
func (p *Replay) ExInfoAt(a arch.Addr, t *code.Thread) (e ExInfo, missing arch.Addr, ok bool) {
	l := p.exLayout(a, t)
	if l == nil {
		return e, 0, false
	}
	e.Addr = a
	for _, f := range [...]struct {
		off int
		to  *arch.Addr
	}{{l.Prev, &e.Prev}, {l.Low, &e.Low}, {l.High, &e.High}, {l.Funclet, &e.Funclet}, {l.Enclosing, &e.Enclosing}} {
		v, ok := p.r.word(field(a, f.off))
		if !ok {
			return e, field(a, f.off), false
		}
		*f.to = arch.Addr(v)
	}
	flags, ok := p.r.u32(field(a, l.Flags))
	if !ok {
		return e, field(a, l.Flags), false
	}
	clause, entered := uint32(0), uint8(1)
	if l.Clause >= 0 {
		if clause, ok = p.r.u32(field(a, l.Clause)); !ok {
			return e, field(a, l.Clause), false
		}
	}
	if l.Entered >= 0 {
		if entered, ok = p.r.u8(field(a, l.Entered)); !ok {
			return e, field(a, l.Entered), false
		}
	}
	if !l.onStack() {
		thread, missing := p.pointer(field(a, l.Thread))
		if missing != 0 || thread != t.Addr {
			return e, missing, false
		}
	}
	e.Unwinding, e.Entered, e.Filter = flags&unwindHasStarted != 0, entered != 0, clause == filterClause
	return e, 0, plausible(l, &e, clause, entered, t)
}

// exLayout returns where the exception at a, of thread t, has its fields: what does
// not lie on a stack is a tracker, in a release that may have either.
func (p *Replay) exLayout(a arch.Addr, t *code.Thread) *exInfoLayout {
	if on, known := t.OnStack(a); p.r.exLegacy != nil && known && !on {
		return p.r.exLegacy
	}
	return p.ex
}

// plausible checks an ExInfo against what always holds. Bounds of the stack are
// of use only where they are known.
func plausible(l *exInfoLayout, e *ExInfo, clause uint32, entered uint8, t *code.Thread) bool {
	onStack := func(a arch.Addr) bool {
		return t.StackBase == 0 || a >= t.StackLimit && a <= t.StackBase
	}
	if clause > maxClause || entered > 1 {
		return false
	}
	// The newer one lies below the older.
	if l.onStack() && (!onStack(e.Addr) || e.Prev != 0 && (e.Prev <= e.Addr || !onStack(e.Prev))) {
		return false
	}
	if e.Low != ^arch.Addr(0) && !onStack(e.Low) || e.High != 0 && !onStack(e.High) {
		return false
	}
	// No funclet has been run yet, and the field never been written.
	if !onStack(e.Funclet) || !onStack(e.Enclosing) {
		e.Funclet, e.Enclosing = 0, 0
	}
	return true
}
