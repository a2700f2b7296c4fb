package clr

// Values of an entry that are no IL offset (ICorDebugInfo::MappingTypes,
// src/coreclr/inc/cordebuginfo.h).
const (
	epilogIL       = 0xfffffffd
	prologIL       = 0xfffffffe
	noMappingIL    = 0xffffffff
	firstSpecialIL = epilogIL
)

// An ilRule is how a release of the runtime chooses among the entries of a map for
// its own stack traces.
type ilRule uint8

const (
	// The last of the entries that begin at one place counts, and code behind the
	// last entry that is of a call has none if no other entry follows
	// (DebuggerJitInfo::SetBoundaries and MapNativeOffsetToIL,
	// src/coreclr/debug/ee/functioninfo.cpp of 8.0 and 9.0).
	ilLastCounts ilRule = iota
	// The least of the entries that begin at one place counts
	// (WalkILOffsetsCallback, src/coreclr/vm/debugdebugger.cpp of 10.0).
	ilLeastCounts
)

// An ilFinder finds the IL offset that the runtime's own stack traces have for a
// place in a method's code, from the entries of the method's map. Entries of calls
// alone do not count. Prologues, what lies in front of the first entry, and code
// that was compiled from no IL are at offset 0; epilogues at the greatest offset of
// the map.
type ilFinder struct {
	native uint64 // the place, in bytes from the method's start
	rule   ilRule

	il       uint32 // of the last entry at or before the place
	at       uint64 // where that one begins
	found    bool   // there is one
	behind   bool   // there is one behind the place
	call     bool   // the last entry of all is of a call
	last     uint64 // where that one begins
	greatest uint32
}

// entry takes the next entry, by native offset. It reports whether those that
// follow can matter.
func (f *ilFinder) entry(m mapping) bool {
	if m.il < firstSpecialIL {
		f.greatest = max(f.greatest, m.il)
	}
	f.call, f.last = m.call, m.native
	switch {
	case m.call:
	case m.native > f.native:
		f.behind = true
	case !f.found || m.native > f.at || f.rule == ilLastCounts:
		f.il, f.at, f.found = m.il, m.native, true
	case m.il != noMappingIL && int32(m.il) < int32(f.il):
		f.il = m.il
	}
	return !f.behind || f.il == epilogIL
}

// offset returns the IL offset, after the last entry.
func (f *ilFinder) offset() uint32 {
	switch {
	case f.rule == ilLastCounts && !f.behind && f.call && f.native >= f.last:
		return 0
	case f.il == epilogIL:
		return f.greatest
	case f.il >= firstSpecialIL:
		return 0
	}
	return f.il
}
