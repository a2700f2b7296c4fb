package clr

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// Ends says what the runtime ends the process for on t. Before it ends because of a
// full stack, of Environment.FailFast or of a defect, it makes an exception object
// of its own the thread's last one, and notes that nobody handles that
// (EEPolicy::LogFatalError in src/coreclr/vm/eepolicy.cpp of .NET 10). An exception
// without a handler is in its first pass, which found none, and no filter runs.
func (r *Runtime) Ends(t *code.Thread) (code.End, *code.Exception) {
	n := &r.names
	unhandled, ok := r.u32(field(t.Addr, n.LastUnhandled))
	if !ok || unhandled > 1 {
		return code.EndNone, nil
	}
	handle, ok := r.word(field(t.Addr, n.LastThrown))
	if !ok {
		return code.EndNone, nil
	}
	var last *code.Exception
	if unhandled == 1 && handle != 0 {
		if obj, _ := r.fieldObject(arch.Addr(handle)); obj != 0 {
			last = r.exceptionAt(obj)
		}
	}
	switch {
	case last == nil:
	case last.Type == "System.StackOverflowException":
		return code.EndOverflow, nil
	case last.Type == "System.ExecutionEngineException":
		return code.EndFatal, nil
	case last.Type != "":
		return code.EndUnhandled, last
	}
	if t.Exception == 0 {
		return code.EndNone, nil
	}
	e, _, ok := r.Replay().ExInfoAt(t.Exception, t)
	if !ok || e.Unwinding || e.Filter && e.Entered {
		return code.EndNone, nil
	}
	return code.EndUnhandled, r.InFlight(t)
}
