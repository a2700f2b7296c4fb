package managed

import "github.com/seamwalk/seam/arch"

// A Hazard is a guideline of asynchronous stack walks that a process breaks, as
// far as its dump shows.
type Hazard struct {
	Rule           string // of hazardRules
	Text           string // what was seen
	Walker, Target uint32 // TIDs; 0: not known
	Lock           string // kind of the lock; "" if none is involved
	LockAt         arch.Addr
	Holder         uint32 // who holds it; 0: not known
	Threads        []uint32
	Waits          []Wait
	Frames         []HazardFrame // that show it
	WayOut         string
}

// A Wait is one thread waiting for another.
type Wait struct {
	Who, Whom uint32
	What      string
}

// A HazardFrame is a frame of a thread.
type HazardFrame struct {
	TID   uint32
	Frame Frame
}
