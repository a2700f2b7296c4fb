package clr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/managed/code"
)

// Where the runtime has what this package reads is known from three sources, the
// better one laid over the other:
//
//   - the contract descriptor of the very runtime (contract.go), or, where neither
//     the dump nor a file has its bytes, what the table of builds holds of it
//     (layout_builds.go), or that of another build of its release
//     (layout_dactable.go);
//   - the row of its release (layout_releases.go): what no descriptor of that
//     release gives, as RealCodeHeader.DebugInfo of .NET 10;
//   - of a release newer than all rows, the newest row, as far as the descriptor
//     confirms it.
//
// A field has one name in all of them, that of the descriptor: "Thread.Frame". A
// field that no descriptor gives yet has the name of the member in the runtime's
// sources: "Thread.m_pvHJRetAddr". What none of them has is [nowhere], and what
// lies there counts as missing; [Runtime.Lacks] lists it.

// A release is a row of the table: what is known of all builds of one release of
// .NET, on every CPU and OS unless a fact says otherwise.
type release struct {
	major int // of the version: 10 for 10.0.12

	// facts are the fields that the descriptors of this release leave out.
	facts []fact
	// numbers are the globals that they may leave out, by their names.
	numbers map[string]uint64

	// stubs are the kinds of blocks of stubs, by the number that the runtime has
	// for each (StubCodeBlockKind in src/coreclr/vm/codeman.h). A number beyond
	// them is a stub of a kind that is not known.
	stubs []code.StubKind

	// debugInfo and bounds are the forms in which the JIT's debug information is
	// kept. ILOffset believes bounds only if their counts take exactly the bytes
	// that there are. A runtime that has a contract DebugInfo has the newest forms,
	// whatever stands here.
	debugInfo outerForm
	bounds    boundsForm
	ilRule    ilRule // how the runtime's own stack traces choose among the bounds

	// hijackResumes says that the Frame of a tripped hijack counts as one of a
	// thread that was interrupted: see [Replay.Resumable]. Not so in the sources of
	// .NET Core 3.1, nor on 8.0 and 9.0, where walks went on behind such a Frame
	// (44 of 44 and 46 of 46); on 10.0 they fail there (41 of 41).
	hijackResumes bool
	// callerRanges says that on CPUs whose calls leave the return address in a
	// register the range of frames that an exception has unwound is one of callers'
	// stack pointers, [low, high): see [Replay.Unwound]. So it is up to 8.0
	// (STACK_RANGE_BOUNDS_ARE_CALLER_SP of src/coreclr/vm/exceptionhandling.cpp); no
	// recorded dump shows it.
	callerRanges bool
	// losesXState says that a callback's CONTEXT has lost CONTEXT_XSTATE, which
	// older releases hand on.
	losesXState bool

	// dac is how builds of the release are read that come without a descriptor.
	dac dacTable
}

// A fact is where a field lies that the descriptor of a release does not give.
type fact struct {
	name string // "Type.Field"; "Type.!" is the size of Type
	at   int    // offset in bytes, from the begin of Type or from another field

	// from is the field that at counts from, "" for the begin of Type. The
	// distance is the same where the begin of the structure is not, as that of a
	// Thread: its first fields differ by OS.
	from string
	// beside are fields that the descriptor does give, and where they lie in the
	// releases that the fact was seen in. A descriptor that has one of them
	// elsewhere is of another structure, and the fact is not believed.
	beside []place
	// check names the function that holds what it reads there against what must be
	// so, and takes it for missing otherwise; "" if beside is all there is.
	check string
	// own says that a newer release is not taken to have the field here, even if
	// beside agrees: nothing that can be read would tell it from another field.
	own bool
	// seen is the source: a file of the runtime and its version, or the dumps that
	// it was found in.
	seen string
}

// A rowUse says whose row a runtime is read by.
type rowUse uint8

const (
	ownRow  rowUse = iota // that of its own release
	lentRow               // the newest one, for a release newer than all rows
)

// A place is where a field lies.
type place struct {
	name string
	at   int
}

// releaseOf returns the row for a version like "10.0.12". It is the newest row where
// the version is not known, and where it is newer than all rows. Of a version older
// than all rows nothing is known: its row is empty.
func releaseOf(version string) (row *release, use rowUse) {
	first, _, _ := strings.Cut(version, ".")
	major, _ := strconv.Atoi(first)
	newest := &releases[0]
	switch {
	case major > newest.major:
		return newest, lentRow
	case major == 0:
		return newest, ownRow
	}
	for i := range releases {
		if releases[i].major == major {
			return &releases[i], ownRow
		}
	}
	return &release{major: major}, ownRow
}

// lay lays c, which a descriptor gave, over the row of a release: c then has the
// row's facts as well. It returns the names of those that are not believed.
func (row *release) lay(c *contract, use rowUse) (refused []string) {
	for i := range row.facts {
		f := &row.facts[i]
		if _, ok := c.offsets[f.name]; ok {
			continue // the descriptor has the last word
		}
		from, ok := c.offsets[f.from]
		switch {
		case f.own && use == lentRow, f.from != "" && !ok:
		case !f.believed(c, use):
			refused = append(refused, f.name)
		default:
			c.offsets[f.name] = from + f.at
		}
	}
	for name, v := range row.numbers {
		if _, ok := c.globals[name]; !ok {
			c.globals[name] = global{value: v}
		}
	}
	return refused
}

// believed reports whether c has the fields beside f where they were when f was
// seen. Of a newer release c must have them all; the release's own descriptor may
// leave out what the row has.
func (f *fact) believed(c *contract, use rowUse) bool {
	return !slices.ContainsFunc(f.beside, func(p place) bool {
		at, ok := c.offsets[p.name]
		return ok && at != p.at || !ok && use == lentRow
	})
}
