package profiler

import "strings"

// A contractRow is a conformance row of docs/contract.md that a recorded walk
// shows: its callbacks, and its result.
type contractRow struct {
	row        int
	releases   string // of .NET in which it is so
	kind, walk string // the case, but for its release, and a walk in it
	want       string // "..." stands for the frames of the thread's root
	hr         HRESULT
}

// dump returns the case's folder of a release, and the dump in it.
func (c *contractRow) dump(release string) (name, dump string) {
	if dump = "dump.zst"; c.kind == "scenarios" {
		dump = "normal.zst"
	}
	return "net" + release + "-" + c.kind + "-x64", dump
}

// roots are the frames of a thread's root by kind of case.
var roots = map[string]string{
	"seeds": "<Seeds>b__20", "callbacks": "<RunOne>b__0", "scenarios": "<Main>b__0",
	"elt-slow": "<RunOne>b__0 RunWorker Run StartCallback", "elt-fast": "<RunOne>b__0 RunWorker Run StartCallback",
}

// calls returns the callbacks in a release. In .NET 10 threads begin with a managed
// frame of the runtime's, in others only where hooks keep methods from being inlined.
func (c *contractRow) calls(release string) string {
	root := roots[c.kind]
	if release == "10" && !strings.HasSuffix(root, "StartCallback") {
		root += " StartCallback"
	}
	return strings.Replace(c.want, "...", root+" 0", 1)
}

var contractRows = []contractRow{
	{1, "10 8", "elt-fast", "elt-calls@000/000-FunctionEnter3/seeded", "A <Define>b__66_30 ...", S_OK},
	{1, "10 9", "elt-slow", "elt-calls@000/000-FunctionEnter3WithInfo/seeded", "A <Define>b__66_30 ...", S_OK},
	{1, "10 9 8", "seeds", "seeds-coop-deep/seeded", "SeedCoop Mid <Seeds>b__88_18 Mid <Seeds>b__88_2 ...", S_OK},
	{2, "10 9 8", "seeds", "seeds-pre-stub/unseeded", "SeedPre ...", S_OK},
	{3, "10 9 8", "seeds", "seeds-pre-stub/seed-native", "SeedPre ...", S_OK},
	{3, "10 9 8", "seeds", "seeds-pre-stub/seed-zero", "SeedPre ...", S_OK},
	{4, "10 9 8", "seeds", "seeds-coop-stub/seed-native", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{4, "10 9 8", "seeds", "seeds-coop-stub/seed-pc0", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{7, "10 9 8", "seeds", "seeds-coop-reverse/unseeded", "<Seeds>b__88_3 ...", S_OK},
	{8, "10 9 8", "seeds", "seeds-coop-deep/seeded-deeper", "Mid <Seeds>b__88_18 Mid <Seeds>b__88_2 ...", S_OK},
	{10, "10", "scenarios", "t3820/context", "Park <Define>b__9_80 Create <Define>b__9_52 ...", S_OK},
	{10, "9", "scenarios", "t4706/context", "Park StackAlloc <Define>b__9_45 ...", S_OK},
	{10, "8", "scenarios", "t5101/context", "Park StackAlloc <Define>b__9_45 ...", S_OK},
	{13, "10 9 8", "seeds", "seeds-coop-stub/seeded-flags2", "", E_INVALIDARG},
	{13, "10 9 8", "seeds", "seeds-pre-stub/seeded-flags3", "", E_INVALIDARG},
	{18, "10 9 8", "seeds", "seeds-coop-stub/seeded-flags0", "SeedCoop ...", S_OK},
	{18, "10 9 8", "seeds", "seeds-coop-stub/seeded-size0", "SeedCoop ...", S_OK},
	{21, "10 9 8", "seeds", "seeds-pre-inlined-saved/unseeded", "SeedPreSaved <Seeds>b__88_1 ...", S_OK},
	{22, "10 9 8", "seeds", "seeds-coop-reverse/seeded", "SeedCoop Mid SeedReverse 0 <Seeds>b__88_3 ...", S_OK},
	{24, "10 9 8", "seeds", "seeds-coop-stub/unseeded", "", E_FAIL},
	{26, "10 9 8", "seeds", "seeds-coop-lcg-leaf/seeded", "...", S_OK},
	{27, "10 9 8", "seeds", "seeds-coop-catch-leaf/seeded", "CatchLeaf <Seeds>b__88_8 ...", S_OK},
	{28, "10 9 8", "seeds", "seeds-coop-lcg-between-natives/seeded", "SeedCoop Mid SeedReverse 0 0 <Seeds>b__88_5 ...", S_OK},
	{29, "10 9 8", "seeds", "seeds-coop-lcg/seeded", "SeedCoopInlined ...", S_OK},
	{30, "10 9 8", "seeds", "seeds-coop-delegate-lcg/seeded", "SeedCoopInlined Plain2 0 <Seeds>b__88_6 ...", S_OK},
	{38, "10 9 8", "callbacks", "exc-levels@035/035-InBody-coop/unseeded", "LevelA <Define>b__66_1 ...", S_OK},
	{38, "10 9 8", "seeds", "seeds-coop-catch/seeded", "SeedCoop <Seeds>b__88_7 ...", S_OK},
	{39, "10 9 8", "seeds", "seeds-coop-catch-leaf/seeded-deeper", "<Seeds>b__88_8 ...", S_OK},
	{40, "10 9 8", "seeds", "seeds-coop-finally-leaf/seeded", "FinallyLeaf <Seeds>b__88_9 ...", S_OK},
	{41, "10 9 8", "seeds", "seeds-coop-nested-catch/seeded", "SeedCoop <Seeds>b__88_13 ...", S_OK},
	{42, "8", "callbacks", "exc-levels@014/014-InBody-coop/seeded", "Accept LevelA 0 Thrower Thrower LevelC LevelB LevelA <Define>b__66_1 ...", S_OK},
	{43, "10 9", "callbacks", "exc-levels@014/014-InBody-coop/seeded", "Accept LevelA Thrower Thrower LevelC LevelB LevelA <Define>b__66_1 ...", S_OK},
	{44, "10 8", "callbacks", "exc-throw-in-catch@011/011-ExceptionUnwindFunctionLeave/seeded", "Thrower ThrowInCatch <Define>b__66_5 ...", S_OK},
	{44, "9", "callbacks", "exc-throw-in-catch@011/011-ExceptionUnwindFunctionLeave/seeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{46, "10 9 8", "callbacks", "exc-levels@018/018-ExceptionUnwindFunctionEnter/unseeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{47, "10", "callbacks", "exc-throw-in-catch@012/012-ExceptionUnwindFunctionEnter/seeded", "Thrower ThrowInCatch <Define>b__66_5 ...", S_OK},
	{47, "9 8", "callbacks", "exc-throw-in-catch@012/012-ExceptionUnwindFunctionEnter/seeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{50, "10", "scenarios", "t3836/context", "SpinLoop <Define>b__9_66 ...", S_OK},
	{50, "9", "scenarios", "t4731/context", "SpinAlloc <Define>b__9_68 ...", S_OK},
	{50, "8", "scenarios", "t5127/context", "SpinLoop <Define>b__9_66 ...", S_OK},
	{52, "10 9 8", "callbacks", "exc-fault-null@000/000-ExceptionThrown/unseeded", "Deref <Define>b__66_11 ...", S_OK},
	{53, "10 9 8", "scenarios", "inlined/context", "Park InlineOuter <Define>b__9_57 ...", S_OK},
	{54, "10 9 8", "callbacks", "alloc-object@003/003-ObjectAllocated/seeded", "Ctor <Define>b__66_28 ...", S_OK},
	{62, "10 9 8", "seeds", "seeds-coop-shared-generic/seeded", "SeedCoop Run <Seeds>b__88_14 ...", S_OK},
	{67, "10", "elt-slow", "elt-calls@000/000-FunctionEnter3WithInfo/unseeded", "", E_FAIL},
	{67, "9", "elt-slow", "elt-calls@000/000-FunctionEnter3WithInfo/unseeded", "A <Define>b__66_30 ...", S_OK},
	{68, "10", "callbacks", "exc-levels@018/018-ExceptionUnwindFunctionEnter/seeded", "Thrower Thrower LevelC LevelB LevelA <Define>b__66_1 ...", S_OK},
	{68, "9 8", "callbacks", "exc-levels@018/018-ExceptionUnwindFunctionEnter/seeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{69, "10", "callbacks", "exc-throw-in-catch@021/021-ExceptionUnwindFunctionLeave/seeded", "0 ThrowInCatch <Define>b__66_5 ...", S_OK},
	{69, "9", "callbacks", "exc-throw-in-catch@021/021-ExceptionUnwindFunctionLeave/seeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{69, "8", "callbacks", "exc-throw-in-catch@021/021-ExceptionUnwindFunctionLeave/seeded", "ThrowInCatch <Define>b__66_5 ...", S_OK},
	{70, "10 9", "callbacks", "exc-levels@023/023-ExceptionUnwindFinallyEnter/unseeded", "LevelC LevelB LevelA <Define>b__66_1 ...", S_OK},
	{70, "8", "callbacks", "exc-levels@023/023-ExceptionUnwindFinallyEnter/unseeded", "", CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX},
	{71, "10 9", "callbacks", "exc-rethrow@025/025-InBody-coop/unseeded", "0 <Define>b__66_3 ...", S_OK},
	{71, "8", "callbacks", "exc-rethrow@025/025-InBody-coop/unseeded", "<Define>b__66_3 ...", S_OK},
	{72, "10 9", "callbacks", "exc-levels@000/000-ExceptionThrown/seeded", "Thrower Thrower LevelC LevelB LevelA <Define>b__66_1 ...", S_OK},
	{73, "10", "elt-slow", "elt-calls@001/001-FunctionEnter3WithInfo/unseeded", "", E_FAIL},
	{73, "9", "elt-slow", "elt-calls@001/001-FunctionEnter3WithInfo/unseeded", "B A <Define>b__66_30 ...", S_OK},
	{74, "10 8", "elt-fast", "elt-calls@000/000-FunctionEnter3/seeded", "A <Define>b__66_30 ...", S_OK},
	{74, "10 8", "elt-fast", "elt-calls@000/000-FunctionEnter3/unseeded", "", E_FAIL},
	{75, "10 8", "elt-fast", "elt-reverse@001/001-FunctionEnter3/unseeded", "<Define>b__66_33 ...", S_OK},
	{75, "10", "elt-slow", "elt-reverse@001/001-FunctionEnter3WithInfo/unseeded", "<Define>b__66_33 ...", S_OK},
	{75, "9", "elt-slow", "elt-reverse@001/001-FunctionEnter3WithInfo/unseeded", "A Rev 0 <Define>b__66_33 ...", S_OK},
	{79, "10", "callbacks", "exc-cctor@000/000-InBody-coop/seeded", "Make cctor 0 InitClassSlow GetNonGCStaticBaseSlow TouchCctor <PrepareFresh>b__2 <Define>b__66_22 ...", S_OK},
	{79, "9 8", "callbacks", "exc-cctor@000/000-InBody-coop/seeded", "Make cctor 0 TouchCctor <PrepareFresh>b__2 <Define>b__66_22 ...", S_OK},
	{81, "10 9", "scenarios", "first-chance/context", "Park FirstChance <Define>b__9_17 ...", S_OK},
	{81, "8", "scenarios", "first-chance/context", "Park FirstChance 0 <Define>b__9_17 ...", S_OK},
}
