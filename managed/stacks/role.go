package stacks

import (
	"strings"

	"github.com/seamwalk/seam/managed/code"
)

// starts are the native functions that threads of .NET's own run from their start
// on, as symbol tables name them: threads of which no runtime notes what they are
// for (src/coreclr/vm/tieredcompilation.cpp, finalizerthread.cpp,
// debug/ee/rcthread.cpp, pal/src/synchmgr/synchmanager.cpp, src/coreclr/gc/gc.cpp,
// nativeaot/Runtime/FinalizerHelpers.cpp, src/native/libs/System.Native/pal_signal.c,
// src/native/eventpipe/ds-server.c of .NET 8 to 10).
var starts = map[string]code.Role{
	"TieredCompilationManager::BackgroundWorkerBootstrapper0": code.RoleTiering,
	"TieredCompilationManager::BackgroundWorkerStart":         code.RoleTiering,
	"FinalizerThread::FinalizerThreadStart":                   code.RoleFinalizer,
	"FinalizerStart":                                          code.RoleFinalizer,
	"WKS::gc_heap::bgc_thread_stub":                           code.RoleGC,
	"SVR::gc_heap::bgc_thread_stub":                           code.RoleGC,
	"SVR::gc_heap::gc_thread_stub":                            code.RoleGC,
	"DebuggerRCThread::ThreadProcStatic":                      code.RoleDebugger,
	"DbgTransportSession::TransportWorkerStatic":              code.RoleDebugger,
	"CorUnix::CPalSynchronizationManager::WorkerThread":       code.RoleWaits,
	"SignalHandlerLoop":                                       code.RoleSignals,
}

// roleOf returns the role of a thread that has a native function on its stack, ""
// if that does not tell it.
func roleOf(function string) code.Role {
	name, _, _ := strings.Cut(function, "(")
	return starts[name]
}

// roles are what roles are called in a heading.
var roles = map[code.Role]string{
	code.RoleFinalizer:  "finalizer thread",
	code.RoleThreadPool: "thread pool",
	code.RoleTiering:    "tiered compilation",
	code.RoleGC:         "garbage collector",
	code.RoleDebugger:   "debugger's helper",
	code.RoleWaits:      "runtime's waits",
	code.RoleSignals:    "signal handler",
}
