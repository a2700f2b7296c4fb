package stacks

import (
	"fmt"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
)

// A Cause is what ended the process.
type Cause struct {
	TID uint32 // of the thread that it happened on
	// Text says it in words, as in "unhandled System.IO.IOException: disk full",
	// "FailFast: no way out", "stack overflow", "SIGSEGV writing 0x8". What of it is
	// from the dump stands there as it is, control characters included.
	Text   string
	Signal *Signal // nil: the dump tells of none
	Code   uint32  // exception code of Windows; 0: none
}

// A Signal is a signal that was sent to a thread, or that it has caused.
type Signal struct {
	Name    string // "SIGSEGV", or "signal 77" if it has no name
	Code    string // what si_code says, as "SEGV_MAPERR"; "" if that is not known
	Address arch.Addr
	HasAddr bool // the system told the address that could not be accessed, or of the instruction
}

// String tells the cause and its thread, as in "unhandled System.X: message, in
// thread 13963" and "SIGSEGV writing 0x8 in thread 13963".
func (c *Cause) String() string {
	comma := ","
	if c.Signal != nil && strings.HasPrefix(c.Text, c.Signal.Name) {
		comma = ""
	}
	return fmt.Sprintf("%s%s in thread %d", c.Text, comma, c.TID)
}

// An ending is what is known of how the process ended, found when it is asked for.
type ending struct {
	thread, told bin.Once
	tid          uint32 // of the thread that it happened on; 0: none
	end          code.End
	cause        *Cause
}

// Cause says what ended the process; nil if the dump does not show that anything
// has. It may walk a part of one stack.
func (s *Stacks) Cause() *Cause {
	e := s.ended()
	e.told.Do(func() {
		if e.tid != 0 {
			s.session.Process.GuardRetry(func() { e.cause = s.cause(e) })
		}
	})
	return e.cause
}

// ended finds the thread that ended the process: the one that the dump names, or
// else one on which a runtime has noted that it ends the process. That an exception
// has no handler is noted nowhere but in the way it goes on: on a thread that the
// dump does not name, the search for one may be still under way.
func (s *Stacks) ended() *ending {
	e, p := &s.ending, s.session.Process
	e.thread.Do(func() {
		p.GuardRetry(func() {
			e.tid, e.end = 0, code.EndNone
			if c := p.Crash; c != nil {
				e.tid = c.Thread
				e.end, _ = s.ends(c.Thread)
				return
			}
			for i := range p.Threads {
				tid := p.Threads[i].ID
				if end, _ := s.ends(tid); end == code.EndOverflow || end == code.EndFatal {
					e.tid, e.end = tid, end
					return
				}
			}
		})
	})
	return e
}

// ends says what the runtime of a thread ends the process for on it.
func (s *Stacks) ends(tid uint32) (code.End, *code.Exception) {
	m, rt := s.session.Thread(tid)
	ending, ok := rt.(code.Ending)
	if m == nil || !ok {
		return code.EndNone, nil
	}
	return ending.Ends(m)
}

// cause says what ended the process, on a thread that is known.
func (s *Stacks) cause(e *ending) *Cause {
	p := s.session.Process
	c := &Cause{TID: e.tid}
	var sig *arch.Signal
	if crash := p.Crash; crash != nil {
		if sig = p.ABI.SignalOf(crash.Signal); sig == nil {
			sig = &arch.Signal{Name: fmt.Sprintf("signal %d", crash.Signal)}
		}
		c.Signal = &Signal{Name: sig.Name, Code: p.ABI.SignalCode(sig, crash.Code), Address: crash.Address, HasAddr: crash.HasAddr}
	}
	switch {
	case sig != nil && !sig.Aborts: // and not the runtime itself
		c.Text = c.Signal.text(sig, s.access(e.tid))
	case e.end == code.EndOverflow:
		c.Text = "stack overflow"
	case e.end == code.EndFatal:
		c.Text = s.fatal(e.tid)
	case e.end == code.EndUnhandled:
		_, thrown := s.ends(e.tid)
		c.Text = "unhandled exception"
		if thrown != nil && thrown.Type != "" {
			c.Text = "unhandled " + (&Exception{Type: thrown.Type, Message: thrown.Message}).String()
		}
	default:
		c.Text = c.Signal.text(sig, arch.AccessUnknown)
	}
	return c
}

// text says in words what a signal was about.
func (g *Signal) text(sig *arch.Signal, access arch.Access) string {
	switch {
	case sig.Accesses && g.HasAddr:
		return fmt.Sprintf("%s %v %v", g.Name, access, g.Address)
	case g.HasAddr:
		return fmt.Sprintf("%s at %v", g.Name, g.Address)
	case sig.Accesses && g.Code == siKernel:
		return g.Name + " at an address that the system did not tell"
	}
	return g.Name
}

// siKernel is the code of a signal for which the kernel fills in nothing else: of
// SIGSEGV a general protection fault, as at an address that is not canonical.
const siKernel = "SI_KERNEL"

// maxEnd bounds the frames of a stack that are looked at for what ended it.
const maxEnd = 256

// access says what the thread did with memory that it could not access: the kernel
// has noted that beside the registers that it put on the stack for a handler.
func (s *Stacks) access(tid uint32) arch.Access {
	p := s.session.Process
	out := arch.AccessUnknown
	s.newest(tid, func(f *managed.Frame) bool {
		context, ok := p.ABI.SignalContext(p.Memory, f.PC, f.SP)
		if ok && f.Kind == managed.Native && f.SP != 0 && p.ABI.Access != nil {
			out = p.ABI.Access(p.Memory, context)
		}
		return !ok && f.Kind == managed.Native
	})
	return out
}

// fatal says why a runtime has ended the process of its own.
func (s *Stacks) fatal(tid uint32) string {
	var stack []code.Standing
	s.newest(tid, func(f *managed.Frame) bool {
		if f.Kind == managed.Managed {
			stack = append(stack, code.Standing{PC: f.PC, SP: f.SP, Code: f.Code})
		}
		return len(stack) < maxAsked
	})
	_, rt := s.session.Thread(tid)
	message, asked, known := "", false, false
	if ending, ok := rt.(code.Ending); ok {
		message, asked, known = ending.LastWords(stack)
	}
	switch {
	case known:
		return "FailFast: " + message
	case asked:
		return "FailFast"
	}
	return "FailFast, or a fatal error of the runtime" // whose frames look the same where methods have no names
}

// maxAsked is how many managed frames tell who has asked for the end.
const maxAsked = 8

// newest hands out the newest frames of a thread until f returns false.
func (s *Stacks) newest(tid uint32, f func(*managed.Frame) bool) {
	p := s.session.Process
	for i := range p.Threads {
		t := &p.Threads[i]
		if t.ID != tid {
			continue
		}
		w, n := s.session.NewWalker(), 0
		for ok := w.Start(t); ok && n < maxEnd && f(w.Frame()); ok = w.Next() {
			n++
		}
		return
	}
}
