package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/clr"
)

// GetFunctionFromIP answers as ICorProfilerInfo::GetFunctionFromIP does, and
// ICorProfilerInfo4::GetFunctionFromIP2, whose rejit id is 0 unless the method
// has been rejitted: methods without metadata, IL stubs and dynamic ones, do
// not count. Where it fails the runtime leaves its output untouched. It returns
// E_UNEXPECTED, which the runtime does not, where the dump lacks the answer.
func (n *Snapshotter) GetFunctionFromIP(ip arch.Addr) (FunctionID, HRESULT) {
	fn, hr := n.GetFunctionFromIP3(ip)
	if c := n.lookup(ip); hr == S_OK && c.hidden != 0 && c.visibility == clr.Visible {
		n.why = Why{Text: unwindTexts[unwindNoName], At: c.hidden, Missing: true}
		return 0, E_UNEXPECTED
	} else if hr == S_OK && c.visibility != clr.Visible {
		return 0, E_FAIL
	}
	return fn, hr
}

// GetFunctionFromIP3 answers as ICorProfilerInfo8::GetFunctionFromIP3 does,
// which knows methods without metadata as well.
func (n *Snapshotter) GetFunctionFromIP3(ip arch.Addr) (FunctionID, HRESULT) {
	if len(n.byID) == 0 && n.cut == "" {
		return 0, CORPROF_E_NOT_YET_AVAILABLE
	}
	c := n.lookup(ip)
	if at := n.unknown(c); at != 0 {
		n.why = Why{Text: unwindTexts[unwindNoCode], At: at, Missing: true}
		return 0, E_UNEXPECTED
	}
	if !c.managed() {
		return 0, E_FAIL
	}
	if c.code.Method == 0 {
		n.why = Why{Text: unwindTexts[unwindNoMethod], At: c.missing, Missing: true}
		return 0, E_UNEXPECTED
	}
	return FunctionID(c.code.Method), S_OK
}
