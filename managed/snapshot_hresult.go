package managed

import "fmt"

// An HRESULT is what a profiler's call returns, or its callback answers.
type HRESULT uint32

// The HRESULTs of the calls that are replayed (winerror.h;
// src/coreclr/inc/corerror.xml of dotnet/runtime).
const (
	S_OK         HRESULT = 0
	S_FALSE      HRESULT = 1
	E_NOTIMPL    HRESULT = 0x80004001
	E_FAIL       HRESULT = 0x80004005
	E_UNEXPECTED HRESULT = 0x8000FFFF
	E_INVALIDARG HRESULT = 0x80070057

	CORPROF_E_NOT_YET_AVAILABLE                HRESULT = 0x8013135B
	CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX      HRESULT = 0x8013135F
	CORPROF_E_STACKSNAPSHOT_UNSAFE             HRESULT = 0x80131360
	CORPROF_E_STACKSNAPSHOT_ABORTED            HRESULT = 0x80131361
	CORPROF_E_INCONSISTENT_WITH_FLAGS          HRESULT = 0x80131374
	CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD HRESULT = 0x8013135E // the runtime ends the process with it
)

var hresults = map[HRESULT]string{
	S_OK:         "S_OK",
	S_FALSE:      "S_FALSE",
	E_NOTIMPL:    "E_NOTIMPL",
	E_FAIL:       "E_FAIL",
	E_UNEXPECTED: "E_UNEXPECTED",
	E_INVALIDARG: "E_INVALIDARG",

	CORPROF_E_NOT_YET_AVAILABLE:                "CORPROF_E_NOT_YET_AVAILABLE",
	CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX:      "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX",
	CORPROF_E_STACKSNAPSHOT_UNSAFE:             "CORPROF_E_STACKSNAPSHOT_UNSAFE",
	CORPROF_E_STACKSNAPSHOT_ABORTED:            "CORPROF_E_STACKSNAPSHOT_ABORTED",
	CORPROF_E_INCONSISTENT_WITH_FLAGS:          "CORPROF_E_INCONSISTENT_WITH_FLAGS",
	CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD: "CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD",
}

// Failed reports whether h is a failure, as the macro FAILED does.
func (h HRESULT) Failed() bool { return int32(h) < 0 }

// Name returns the symbol of h, or "" if it is none that the calls return.
func (h HRESULT) Name() string { return hresults[h] }

func (h HRESULT) String() string { return fmt.Sprintf("0x%08x", uint32(h)) }
