package stacks

import (
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/code"
)

// An Exception is a managed exception: of a thread it is the one in progress (it is
// being dispatched, or a catch, finally or filter block runs because of it), or the
// one that nobody handled.
type Exception struct {
	Type       string // "": not known
	Message    string
	HasMessage bool      // the message is known; it may be empty
	Address    arch.Addr // of the exception object; 0: not known
	HResult    uint32
	HasHResult bool
	// Inner is the exception that was its cause; nil if there is none. All are
	// those of an AggregateException, the first of which is Inner. The same
	// exception may be reached in more than one way, and is then shared.
	Inner *Exception
	All   []*Exception
	// Frames is the stack trace that the object has: from where it was thrown on
	// outwards, as far as it has come. Their By is empty.
	Frames []Frame
	// Rethrown are indices of Frames: there ends the stack trace that the object
	// had when it was thrown anew in another place, as for an await.
	Rethrown []int
	// Lacks names what of it is not known, or not all of it: "inner", "all",
	// "frames".
	Lacks []string
}

// String tells the type and the message, as in "System.IO.IOException: disk full",
// as they are in the dump, control characters included.
func (e *Exception) String() string {
	s := e.Type
	if s == "" {
		s = "an exception"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// HasFrames reports whether anything is known of the stack trace. One without
// frames is that of an exception that was never thrown.
func (e *Exception) HasFrames() bool {
	for _, part := range e.Lacks {
		if part == lackFrames && len(e.Frames) == 0 {
			return false
		}
	}
	return true
}

const lackFrames = "frames"

// lacking names the parts of an exception.
var lacking = []struct {
	part code.Lacking
	name string
}{{code.LackInner, "inner"}, {code.LackAll, "all"}, {code.LackTrace, lackFrames}}

// exception describes e and those that it leads to, as a runtime has read them.
func (d *describer) exception(rt code.Runtime, e *code.Exception) *Exception {
	x := exceptions{d, rt, map[*code.Exception]*Exception{}}
	return x.describe(e)
}

// exceptions describes exceptions that lead to each other.
type exceptions struct {
	d    *describer
	rt   code.Runtime
	done map[*code.Exception]*Exception
}

// describe describes e. What a runtime of the caller's has made a cycle of ends
// where it began.
func (x *exceptions) describe(e *code.Exception) *Exception {
	if e == nil {
		return nil
	}
	if out, ok := x.done[e]; ok {
		return out
	}
	x.done[e] = nil
	out := &Exception{Type: e.Type, Message: e.Message, HasMessage: e.HasMessage, Address: e.Address, HResult: e.HResult, HasHResult: e.HasHResult}
	out.Inner = x.describe(e.Inner)
	for _, one := range e.All {
		if one := x.describe(one); one != nil {
			out.All = append(out.All, one)
		}
	}
	for i := range e.Trace {
		f := &e.Trace[i]
		if f.Rethrown {
			out.Rethrown = append(out.Rethrown, i)
		}
		out.Frames = append(out.Frames, x.frame(f))
	}
	for _, l := range lacking {
		if e.Lacks&l.part != 0 {
			out.Lacks = append(out.Lacks, l.name)
		}
	}
	x.done[e] = out
	return out
}

// frame describes a frame of a stack trace. Code that is no more says nothing of
// the pc.
func (x *exceptions) frame(f *code.TraceFrame) Frame {
	at := managed.Frame{PC: f.PC, SP: f.SP, Kind: managed.Managed, Code: f.Code, Runtime: x.rt}
	switch {
	case f.Native:
		at.Kind, at.Runtime = managed.Native, nil
	case f.Code.Kind == code.NotManaged:
		at.PC = arch.PC{}
	}
	place := x.d.place(&at).Place
	if place.Line > 0 && strings.Contains(place.Function, "?") {
		// A printed trace names a frame by method and line together. Where the
		// method is known in parts only, the line is left out too.
		less := *place
		less.File, less.Line = "", 0
		place = &less
	}
	return Frame{PC: f.PC, SP: f.SP, Place: place}
}
