package clr

import (
	"slices"

	"github.com/seamwalk/seam/managed/code"
)

// releases is the table of releases, the newest first. See docs/adding.md for what
// a row needs.
var releases = []release{{
	major:     10,
	facts:     facts10,
	numbers:   map[string]uint64{"MethodDescAlignment": 8, "StubCodeBlockLast": 0xf},
	stubs:     stubs10,
	debugInfo: outerFlags10, bounds: boundsBits2, ilRule: ilLeastCounts,
	hijackResumes: true, losesXState: true,
	dac: dacTable10,
}, {
	major:     9,
	facts:     facts9,
	numbers:   numbers9,
	stubs:     stubs8,
	debugInfo: outerFlags9, bounds: boundsNibbles, ilRule: ilLastCounts,
	dac: dacTable9,
}, {
	major: 8, callerRanges: true,
	facts:     facts8,
	numbers:   numbers9,
	stubs:     stubs8,
	debugInfo: outerFlags9, bounds: boundsNibbles, ilRule: ilLastCounts,
	dac: dacTable8,
}}

// Structures of .NET 10: dumps of 10.0.12 (Linux and Windows, x86-64) and 10.0.9
// (Linux, ARM64), and the sources of 10.0. What its descriptors give as well is
// here for one that leaves a part of it out.
var facts10 = slices.Concat(threadFacts, exceptionFacts, codeFacts, []fact{
	{name: "ReadyToRunHeader.MajorVersion", at: 4, check: "imageSection", seen: given},

	{name: "MethodDesc.!", at: 16, beside: []place{{"MethodDesc.CodeData", 8}}, seen: given},
	{name: "PInvokeMethodDesc.!", at: 56, beside: []place{{"MethodDesc.!", 16}}, check: "PInvokeImage", seen: given},
	{name: "DynamicMethodDesc.!", at: 48, beside: []place{{"DynamicMethodDesc.MethodName", 32}}, seen: given},
	{name: "GenericsDictInfo.NumDicts", at: 4, beside: []place{{"GenericsDictInfo.NumTypeArgs", 6}}, seen: given},
	{name: "FixupPrecodeData.Target", at: 0, beside: []place{{"FixupPrecodeData.MethodDesc", 8}}, check: "precodeMethod",
		seen: "docs/design/datacontracts/PrecodeStubs.md of 10.0"},

	{name: "ModuleLookupMap.Next", at: 0, beside: []place{{"ModuleLookupMap.TableData", 8}}, check: "methodMap", seen: given},
	{name: "ModuleLookupMap.Count", at: 16, beside: []place{{"ModuleLookupMap.TableData", 8}}, check: "methodMap", seen: given},
	{name: "ArrayListBase.Count", at: 0, check: "assemblyModule", seen: given},
	{name: "ArrayListBase.FirstBlock", at: 8, check: "assemblyModule", seen: given},
	{name: "ArrayListBlock.Next", at: 0, check: "assemblyModule", seen: given},
	{name: "ArrayListBlock.Size", at: 8, check: "assemblyModule", seen: given},
	{name: "ArrayListBlock.ArrayStart", at: 16, check: "assemblyModule", seen: given},
	{name: "Assembly.Module", at: 16, check: "assemblyModule", seen: given},

	{name: "ExceptionInfo.CSFEHClause", at: 0x218, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.CSFEnclosingClause", at: 0x220, check: "plausible", own: true, seen: exInfo10},
}, exInfoFacts)

// codeFacts are of structures that no descriptor of .NET 9 and 10 gives, and that
// are the same in both.
var codeFacts = []fact{
	{name: "RangeSection.RangeList", at: 48, beside: []place{{"RangeSection.HeapList", 40}}, check: "stubListKind",
		seen: "src/coreclr/vm/codeman.h of 10.0, RangeSection: _pRangeList follows _pHeapList"},
	{name: "CodeRangeMapRangeList._rangeListType", at: 0x120, check: "stubListKind",
		seen: "dumps of 10.0.12 and 9.0.20 for Linux: behind the RangeList and its lock"},
	{name: "RealCodeHeader.DebugInfo", at: 0, beside: []place{{"RealCodeHeader.GCInfo", 16}}, check: "ILOffset",
		seen: "src/coreclr/vm/codeman.h of 10.0, RealCodeHeader"},
	{name: "RealCodeHeader.EHInfo", at: 8, beside: []place{{"RealCodeHeader.GCInfo", 16}}, check: "Filter",
		seen: "src/coreclr/vm/codeman.h of 10.0, RealCodeHeader"},

	{name: "Frame.Identifier", at: 0, beside: []place{{"Frame.Next", 8}}, check: "FrameAt",
		seen: "src/coreclr/vm/frames.h of 10.0, Frame"},
	{name: "InlinedCallFrame.Datum", at: 16, beside: []place{{"InlinedCallFrame.CallSiteSP", 24}},
		seen: "src/coreclr/vm/frames.h of 10.0, InlinedCallFrame: m_Datum"},
	{name: "FramedMethodFrame.MethodDescPtr", at: 24, beside: []place{{"FramedMethodFrame.TransitionBlockPtr", 16}, {"FramedMethodFrame.!", 32}},
		seen: "src/coreclr/vm/frames.h of 10.0, FramedMethodFrame: m_pMD"},
	{name: "StubDispatchFrame.RepresentativeMTPtr", at: 32, beside: []place{{"FramedMethodFrame.!", 32}},
		seen: "src/coreclr/vm/frames.h of 10.0, StubDispatchFrame: m_pRepresentativeMT is its first field"},

	{name: "Module.SimpleName", from: "Module.Path", at: -8, check: "moduleName",
		seen: "dumps of 9.0.20 and 10.0.12: the simple name is the field before the path"},
}

// given is said of what descriptors do give, for one that does not.
const given = "the descriptors of 10.0.9 to 10.0.14"

// threadFacts lie behind a Thread's link in .NET 9 and 10, on every platform seen:
// cached stack base and limit, two probe limits, and the two words of a hijack. A
// thread that was never hijacked has 0xcc in all bytes of those.
var threadFacts = []fact{
	{name: "Thread.CachedStackBase", from: "Thread.LinkNext", at: 8, check: "thread", seen: threads},
	{name: "Thread.CachedStackLimit", from: "Thread.LinkNext", at: 16, check: "thread", seen: threads},
	{name: "Thread.m_pvHJRetAddr", from: "Thread.LinkNext", at: 40, check: "thread", seen: threads},
	{name: "Thread.m_ppvHJRetAddrPtr", from: "Thread.LinkNext", at: 48, check: "thread", seen: threads},
	{name: "Thread.m_dwForbidSuspendThread", from: "Thread.LinkNext", at: -56, check: "ForbidsSuspension",
		seen: "dumps of 10.0.12 for Windows; the same distance is taken elsewhere"},
}

const threads = "threads of 10.0.12 (Linux and Windows), 10.0.9 (64-bit Arm) and 9.0.20, whose stacks are known"

// exceptionFacts are those of exception objects and of managed Thread objects, which
// .NET 8 to 10 have in the same places. A field of a class that derives from Exception
// follows Exception's own, the last of which is _HResult.
var exceptionFacts = []fact{
	{name: "Thread.m_ltoIsUnhandled", from: "Thread.LastThrownObject", at: 8, check: "Ends",
		seen: "src/coreclr/vm/threads.h of 10.0, and crash dumps of 10.0.12 and 10.0.9 (64-bit Arm)"},
	{name: "AggregateException._innerExceptions", from: "Exception._HResult", at: 4, check: "list",
		seen: "AggregateException.cs of 8.0 to 10.0: its first field"},
	{name: "ManagedThread._name", at: 24, check: "ThreadName", seen: managedThreads},
	{name: "ManagedThread._DONT_USE_InternalThread", at: 40, check: "ThreadName", seen: managedThreads},
	{name: "Array.!", at: 16, beside: []place{{"Array.m_NumComponents", 8}}, check: "traceOf", seen: given},
	{name: "StackTraceArrayHeader.Size", at: 0, check: "traceOf", seen: traces},
	{name: "StackTraceArrayHeader.!", at: 16, check: "traceOf", seen: traces},
	{name: "StackTraceElement.Ip", at: 0, check: "traceOf", seen: traces},
	{name: "StackTraceElement.sp", at: 8, check: "traceOf", seen: traces},
	{name: "StackTraceElement.MethodDesc", at: 16, check: "element", seen: traces},
	{name: "StackTraceElement.Flags", at: 24, check: "traceOf", seen: traces},
	{name: "StackTraceElement.!", at: 32, check: "traceOf", seen: traces},
}

const managedThreads = "Thread.CoreCLR.cs of 8.0 to 10.0, and dumps of 8.0.31, 9.0.20 and 10.0.12: the object leads back to its Thread"

const traces = "src/coreclr/vm/object.h (StackTraceArray) and clrex.h (StackTraceElement) of 8.0 to 10.0"

// exInfoFacts are those of an ExInfo that .NET 9 and 10 have in the same places,
// found by what must be there at a known point of a dispatch. Descriptors of both
// give the exception that this one nests in, and the handle of the thrown object.
var exInfoFacts = []fact{
	{name: "ExceptionInfo.PreviousNestedInfo", at: 0, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.m_ClauseType", at: 0x38, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.m_fManagedCodeEntered", at: 0x3c, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.ExceptionFlags", at: 0x40, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.StackLowBound", at: 0x80, check: "plausible", own: true, seen: exInfo10},
	{name: "ExceptionInfo.StackHighBound", at: 0x88, check: "plausible", own: true, seen: exInfo10},
	// The object that is being dispatched. A dispatch sets it before it has a
	// handle for it: seen in a thread that was stopped between the two.
	{name: "ExceptionInfo.m_exception", at: 0xb0, check: "objectAt", own: true, seen: exInfo10},
}

const exInfo10 = "dumps of 10.0.12 (Linux and Windows), 10.0.9 (64-bit Arm) and 9.0.20, at known points of a dispatch"

// stubs10 is StubCodeBlockKind of src/coreclr/vm/codeman.h of 10.0.
var stubs10 = []code.StubKind{
	1: code.StubJump, 2: code.StubPrecode, 3: code.StubDynamicHelper, 4: code.StubPrecode, 5: code.StubFixupPrecode,
	6: code.StubDispatch, 7: code.StubResolve, 8: code.StubLookup, 9: code.StubVTable, 10: code.StubCallCounting,
}

// dacTable10 has the entries of g_dacTable of .NET 10 (src/coreclr/inc/dacvars.h).
// These are where the descriptors of recorded builds and their tables have the
// same address.
var dacTable10 = dacTable{
	entries: map[string]uint64{
		"ExecutionManagerCodeRangeMapAddress": 0,
		"ThreadStore":                         15, "FinalizerThread": 16, "GCThread": 17, "AppDomain": 20,
		"ObjectMethodTable": 42, "StringMethodTable": 45, "ExceptionMethodTable": 49, "FreeObjectMethodTable": 56,
	},
}

// numbers9 are those of .NET 8 and 9. Stubs lie in pages of 16 KiB, or of the
// machine's where that are larger (src/coreclr/vm/precode.cpp of 8.0); a page of their
// data follows each. searchPrecodes believes no precode without its MethodDesc.
var numbers9 = map[string]uint64{
	"MethodDescAlignment": 8, "StubCodeBlockLast": 0xf,
	"StubCodePageSize": 1 << 14, "FixupStubPrecodeSize": 24,
}

// stubs8 is StubCodeBlockKind of src/coreclr/vm/codeman.h of 8.0 and 9.0, which have
// no blocks of call-counting stubs.
var stubs8 = stubs10[:10]

// dacTable9 has the entries of g_dacTable of .NET 9 (src/coreclr/inc/dacvars.h and
// vptr_list.h), as 9.0.7 and 9.0.20 have them.
var dacTable9 = dacTable{
	entries: map[string]uint64{
		"ExecutionManagerCodeRangeMapAddress": 0,
		"ThreadStore":                         16, "FinalizerThread": 17, "GCThread": 18, "AppDomain": 21,
		"ObjectMethodTable": 43, "StringMethodTable": 46, "ExceptionMethodTable": 50, "FreeObjectMethodTable": 57,
	},
	vtables: map[string]uint64{
		jitManager: 99, r2rManager: 100, moduleClass: 106,
		"DebuggerClassInitMarkFrame": 126, "DebuggerExitFrame": 127, "DebuggerU2MCatchHandlerFrame": 128,
		"FaultingExceptionFrame": 129, "FuncEvalFrame": 130,
		"HelperMethodFrame": 131, "HelperMethodFrame_1OBJ": 132, "HelperMethodFrame_2OBJ": 133,
		"HelperMethodFrame_3OBJ": 134, "HelperMethodFrame_PROTECTOBJ": 135,
		"HijackFrame": 136, "InlinedCallFrame": 137, "PInvokeCalliFrame": 138, "PrestubMethodFrame": 139,
		"ProtectByRefsFrame": 140, "ProtectValueClassFrame": 141, "ResumableFrame": 142, "RedirectedThreadFrame": 143,
		"StubDispatchFrame": 144, "CallCountingHelperFrame": 145, "ExternalMethodFrame": 146, "DynamicHelperFrame": 147,
		"ExceptionFilterFrame": 148,
	},
}

// facts9 are those of .NET 9.
var facts9 = slices.Concat(threadFacts, exceptionFacts, codeFacts, []fact{
	{name: "ExceptionInfo.CSFEHClause", at: 0x420, check: "plausible", own: true, seen: exInfo9},
	{name: "ExceptionInfo.CSFEnclosingClause", at: 0x428, check: "plausible", own: true, seen: exInfo9},
	{name: "LegacyExceptionTracker.m_pThread", at: 0x90, check: "ExInfoAt", own: true, seen: legacy9},
	{name: "LegacyExceptionTracker.CSFEHClause", at: 0x30, check: "plausible", own: true, seen: legacy9},
	{name: "LegacyExceptionTracker.CSFEnclosingClause", at: 0x110, check: "plausible", own: true, seen: legacy9},
}, exInfoFacts)

// legacy9 is said of ExceptionTrackers, which begin as ExInfos do.
const legacy9 = "a dump of 9.0.7 (Linux, x86-64) with DOTNET_LegacyExceptionHandling=1, threads in each kind of handler"

const exInfo9 = "dumps of 9.0.20 (Linux, x86-64), at known points of a dispatch"

// facts8 are those of .NET 8, whose exceptions in progress have an
// ExceptionTracker, which lies on the heap (src/coreclr/vm/exceptionhandling.h).
var facts8 = slices.Concat(exceptionFacts, []fact{
	{name: "ExceptionInfo.PreviousNestedInfo", at: 0x08, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionTracker.m_pThread", at: 0x10, check: "ExInfoAt", own: true, seen: exInfo8},
	{name: "ExceptionInfo.StackLowBound", at: 0x18, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.StackHighBound", at: 0x20, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.ExceptionFlags", at: 0xc8, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.CSFEHClause", at: 0x118, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.m_ClauseType", at: 0x120, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.m_fManagedCodeEntered", at: 0x124, check: "plausible", own: true, seen: exInfo8},
	{name: "ExceptionInfo.CSFEnclosingClause", at: 0x128, check: "plausible", own: true, seen: exInfo8},
})

const exInfo8 = "dumps of 8.0.31 (Linux, x86-64), at known points of a dispatch"

// dacTable8 has the entries of g_dacTable of .NET 8 (src/coreclr/inc/dacvars.h and
// vptr_list.h), as 8.0.31 has them. 8.0.0 has the vtables two entries earlier.
var dacTable8 = dacTable{
	entries: map[string]uint64{
		"ExecutionManagerCodeRangeMapAddress": 0,
		"ThreadStore":                         16, "FinalizerThread": 17, "GCThread": 18, "AppDomain": 21,
		"ObjectMethodTable": 40, "StringMethodTable": 43, "ExceptionMethodTable": 47, "FreeObjectMethodTable": 54,
	},
	vtables: map[string]uint64{
		jitManager: 97, r2rManager: 98, moduleClass: 104,
		"DebuggerClassInitMarkFrame": 124, "DebuggerExitFrame": 125, "DebuggerU2MCatchHandlerFrame": 126,
		"FaultingExceptionFrame": 127, "FuncEvalFrame": 128,
		"HelperMethodFrame": 129, "HelperMethodFrame_1OBJ": 130, "HelperMethodFrame_2OBJ": 131,
		"HelperMethodFrame_3OBJ": 132, "HelperMethodFrame_PROTECTOBJ": 133,
		"HijackFrame": 134, "InlinedCallFrame": 135, "PInvokeCalliFrame": 137, "PrestubMethodFrame": 138,
		"ProtectByRefsFrame": 139, "ProtectValueClassFrame": 140, "ResumableFrame": 141, "RedirectedThreadFrame": 142,
		"StubDispatchFrame": 143, "CallCountingHelperFrame": 144, "ExternalMethodFrame": 145, "DynamicHelperFrame": 146,
		"ExceptionFilterFrame": 147,
	},
}
