package clr

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A Code is a code.Code with what only CoreCLR has of it. It is a value: looking
// code up allocates nothing.
type Code struct {
	code.Code
	Unwind uint32    // RVA of the unwind information
	Base   arch.Addr // what RVAs in unwind information are relative to
	Header arch.Addr // JIT: the RealCodeHeader; ReadyToRun: the ReadyToRunInfo
	Index  uint32    // ReadyToRun: index of the method's (not the funclet's) RUNTIME_FUNCTION
	// Cold: the pc lies in the part of a ReadyToRun method that is kept apart from
	// the rest. How far it is from Start says nothing of where in the method it is.
	Cold bool
	// Row is the MethodDef row of ReadyToRun code that CompleteCode found in the
	// image's tables of entry points, else 0. Instance is then the signature
	// of the instantiation, and 0 for a method that is not generic.
	Row      uint32
	Instance arch.Addr
}

type codeLayout struct {
	MapTop int `c:"RangeSectionMap.TopLevelData"`

	FragBegin   int `c:"RangeSectionFragment.RangeBegin"`
	FragEnd     int `c:"RangeSectionFragment.RangeEndOpen"`
	FragSection int `c:"RangeSectionFragment.RangeSection"`
	FragNext    int `c:"RangeSectionFragment.Next"`

	SecBegin         int `c:"RangeSection.RangeBegin"`
	SecEnd           int `c:"RangeSection.RangeEndOpen"`
	SecFlags         int `c:"RangeSection.Flags"`
	SecHeap          int `c:"RangeSection.HeapList"`
	SecR2R           int `c:"RangeSection.R2RModule"`
	SecNextForDelete int `c:"RangeSection.NextForDelete"`
	SecJit           int `c:"RangeSection.JitManager,optional"`
	SecList          int `c:"RangeSection.RangeList,optional"`
	ListKind         int `c:"CodeRangeMapRangeList._rangeListType,optional"` // 4 bytes

	HeapStart int `c:"CodeHeapListNode.StartAddress"`
	HeapEnd   int `c:"CodeHeapListNode.EndAddress"`
	HeapBase  int `c:"CodeHeapListNode.MapBase"`
	HeapMap   int `c:"CodeHeapListNode.HeaderMap"`

	HdrMethod  int `c:"RealCodeHeader.MethodDesc"`
	HdrCount   int `c:"RealCodeHeader.NumUnwindInfos"`
	HdrUnwinds int `c:"RealCodeHeader.UnwindInfos"`

	ModuleR2R    int `c:"Module.ReadyToRunInfo"`
	R2RHeader    int `c:"ReadyToRunInfo.ReadyToRunHeader"`
	R2RComposite int `c:"ReadyToRunInfo.CompositeInfo"`
	R2RFuncs     int `c:"ReadyToRunInfo.RuntimeFunctions"`
	R2RNumFuncs  int `c:"ReadyToRunInfo.NumRuntimeFunctions"`
	R2RHotCold   int `c:"ReadyToRunInfo.HotColdMap"`
	R2RNumHot    int `c:"ReadyToRunInfo.NumHotColdMap"`
	R2RThunks    int `c:"ReadyToRunInfo.DelayLoadMethodCallThunks"`
	R2REntries   int `c:"ReadyToRunInfo.EntryPointToMethodDescMap"`
	HashBuckets  int `c:"HashMap.Buckets"`
	BucketKeys   int `c:"Bucket.Keys"`
	BucketValues int `c:"Bucket.Values"`
	BucketSize   int `c:"Bucket.!"`
}

func (l *codeLayout) fragmentSize() int {
	return max(l.FragBegin, l.FragEnd, l.FragSection, l.FragNext) + 8
}

func (l *codeLayout) sectionSize() int {
	return max(l.SecBegin, l.SecEnd, l.SecFlags, l.SecHeap, l.SecR2R, l.SecNextForDelete, l.SecJit, l.SecList) + 8
}

func (l *codeLayout) heapSize() int {
	return max(l.HeapStart, l.HeapEnd, l.HeapBase, l.HeapMap) + 8
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// CodeAt says which managed code holds ip: Kind NotManaged if none does. If
// that, or a part of the answer, could not be found out because bytes are
// missing from the dump, missing is the address of the first of them; Kind,
// Start and Base are then what is known all the same.
//
// Look-up goes by method starts, as in the runtime: an ip in the padding
// behind a method counts as that method.
func (r *Runtime) CodeAt(ip arch.Addr) (c Code, missing arch.Addr) {
	s, ok, missing := r.section(ip)
	if missing != 0 {
		s, ok = r.moduleSection(ip)
	}
	switch {
	case !ok:
		return c, missing
	case s.r2r != 0:
		return r.lookupR2R(s, ip)
	case s.flags&rangeCodeHeap != 0:
		return r.lookupJIT(s, ip)
	case s.flags&rangeList != 0:
		return r.lookupStub(s)
	}
	return c, 0
}

// maxUnwindInfos bounds the RUNTIME_FUNCTIONs of one method: its body, its
// funclets, and on ARM64 the fragments of a body over 1 MiB.
const maxUnwindInfos = 1 << 16

// lookupJIT looks ip up in a heap of JIT-compiled code.
func (r *Runtime) lookupJIT(s rangeSection, ip arch.Addr) (c Code, missing arch.Addr) {
	h, ok, missing := r.codeHeap(s)
	if !ok {
		return c, missing
	}
	if ip < h.Start || ip > h.End || ip < h.MapBase {
		return c, 0
	}
	start, ok, missing := r.methodStart(&h, ip)
	if !ok {
		return c, missing
	}
	c.Start, c.Base = start, s.span.Lo
	// The word before the code points to its header, or is the kind of a
	// block of stubs (src/coreclr/vm/codeman.h, CodeHeader).
	header, ok := r.word(start - codeHeaderSize)
	if !ok {
		return c, start - codeHeaderSize
	}
	if header <= r.stubLast {
		c.Kind, c.Stub = code.Stub, r.stubBlock(header)
		return c, 0
	}
	c.Kind, c.Header = code.JIT, arch.Addr(header)
	l := &r.codeLayout
	md, ok := r.word(c.Header + arch.Addr(l.HdrMethod))
	if !ok {
		return c, c.Header + arch.Addr(l.HdrMethod)
	}
	c.Method = arch.Addr(md)
	n, ok := r.u32(c.Header + arch.Addr(l.HdrCount))
	if !ok {
		return c, c.Header + arch.Addr(l.HdrCount)
	}
	if n == 0 || n > maxUnwindInfos {
		return c, 0
	}
	table := c.Header + arch.Addr(l.HdrUnwinds)
	i, missing := r.searchFunctions(table, n, uint32(ip-c.Base))
	if missing != 0 || i < 0 {
		return c, missing
	}
	f, missing := r.function(table, uint32(i))
	if missing != 0 {
		return c, missing
	}
	c.setBody(f)
	c.Funclet, c.FuncletKnown = c.Body.Lo != c.Start, true
	return c, 0
}

func (c *Code) setBody(f arch.PEFunction) {
	c.Unwind = f.Unwind
	c.Body.Lo = c.Base + arch.Addr(f.Begin)
	if f.End != 0 {
		c.Body.Hi = c.Base + arch.Addr(f.End)
	}
}

// searchFunctions finds the last of n RUNTIME_FUNCTIONs that begins at or
// before rva; -1 if there is none. It reads only what it probes. An entry that
// is out of order is damaged, and counts as missing: it could lead to the
// codes of another function.
func (r *Runtime) searchFunctions(table arch.Addr, n, rva uint32) (i int, missing arch.Addr) {
	entry := r.arch.PE.Entry
	lo, hi := 0, int(n)                  // the entries before lo begin at or before rva, those from hi on behind it
	low, high := int64(-1), int64(1)<<32 // where those next to them begin
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		at := table + arch.Addr(m*entry)
		b := r.linked(at, 4)
		if b == nil {
			return 0, at
		}
		// No two begin at one place, so the m-th begins at m or behind it.
		begin := int64(le32(b))
		switch {
		case begin <= low || begin >= high || begin < int64(m):
			return 0, at
		case begin <= int64(rva):
			lo, low = m+1, begin
		default:
			hi, high = m, begin
		}
	}
	return lo - 1, 0
}

// function reads the i-th RUNTIME_FUNCTION of a table.
func (r *Runtime) function(table arch.Addr, i uint32) (f arch.PEFunction, missing arch.Addr) {
	at := table + arch.Addr(int(i)*r.arch.PE.Entry)
	b := r.linked(at, r.arch.PE.Entry)
	if b == nil {
		return f, r.missing(at, r.arch.PE.Entry)
	}
	return r.arch.PE.Function(b), 0
}
