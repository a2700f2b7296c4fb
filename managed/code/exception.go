package code

import "github.com/seamwalk/seam/arch"

// Throwing is a runtime that knows the exceptions that are in progress.
type Throwing interface {
	// InFlight returns the exception that is being dispatched on t or whose
	// handler runs; nil if there is none. What cannot be read of it is left empty.
	InFlight(t *Thread) *Exception
}

// Ending is a runtime that notes on a thread that it ends the process, and why.
type Ending interface {
	// Ends says what the runtime ends the process for on t, and which exception
	// object that is about; nil where it is about none, or the dump lacks it.
	Ends(t *Thread) (End, *Exception)
	// LastWords returns the message that the program has given with its request
	// to end (Environment.FailFast). stack has the newest managed frames of the
	// thread. asked reports whether they show such a request; known is false
	// where its message cannot be told for sure, or there is none.
	LastWords(stack []Standing) (message string, asked, known bool)
}

// A Standing is a managed frame of a stack.
type Standing struct {
	PC   arch.PC
	SP   arch.Addr // 0: not known
	Code Code
}

// An End is what a runtime ends its process for.
type End uint8

const (
	EndNone      End = iota // it does not, as far as can be told
	EndUnhandled            // an exception for which there is no handler
	EndOverflow             // the stack of the thread is full
	EndFatal                // a program has asked for it (Environment.FailFast), or the runtime cannot go on
)

// An Exception is an exception object.
type Exception struct {
	Type    string    // full name of its class; "" if a part of that cannot be read
	Address arch.Addr // of the object; 0 if it cannot be found
	// Message and HResult are known where the flag is set. A message is read
	// whole or not at all; it is not known, too, where the exception has none
	// of its own. One of more than 32,768 UTF-16 units is cut, and ends with "…".
	Message    string
	HasMessage bool
	HResult    uint32
	HasHResult bool
	// Inner is the exception that was its cause, nil if it has none. All has those
	// of an exception that stands for several (System.AggregateException), the
	// first of which is Inner.
	Inner *Exception
	All   []*Exception
	// Trace is the stack trace that the object has, from where it was thrown on
	// outwards as far as it has come.
	Trace []TraceFrame
	Lacks Lacking // parts that are not known, or not whole
}

// Lacking are parts of an Exception, as a set.
type Lacking uint8

const (
	LackInner Lacking = 1 << iota // whether there is an inner exception, or the chain of them has no end
	LackAll                       // the list, or some of it
	LackTrace                     // the stack trace, or the outer end of it

	// LackParts is all of these: what an exception lacks of which nothing is known.
	LackParts = LackInner | LackAll | LackTrace
)

// A TraceFrame is a frame of the stack trace that an exception object has.
type TraceFrame struct {
	// PC is the return address, or the instruction that caused a fault, which need
	// not be marked as exact: CoreCLR notes one like the other. Its Addr is 0 if the
	// runtime has not noted it.
	PC   arch.PC
	SP   arch.Addr // stack pointer of the frame while it was on a stack; 0 if it is not known
	Code Code      // Method, and what there is now at the pc if that is the same method's code
	// Native: the code is native, which the runtime knows nothing of; Code is empty.
	Native bool
	// Rethrown: here ends the stack trace that the object had when it was thrown
	// anew in another place, as for an await.
	Rethrown bool
}
