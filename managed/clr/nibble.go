package clr

import "github.com/seamwalk/seam/arch"

// A nibbleVersion is the encoding of the nibble map, by the version of the
// ExecutionManager contract.
type nibbleVersion uint8

const (
	// nibbleLinear: a walk back over empty units finds the start of a method
	// (.NET 9 and older).
	nibbleLinear nibbleVersion = 1
	// nibblePointer: a unit in the midst of a method points to its start
	// (.NET 10; docs/design/datacontracts/ExecutionManager.md).
	nibblePointer nibbleVersion = 2
)

var nibbleVersions = map[string]nibbleVersion{"1": nibbleLinear, "2": nibblePointer}

// The nibble map has one nibble for each bucket of code, eight to a unit, the
// highest for the lowest bucket: 0 if no method starts in the bucket, else one
// more than the number of the word at which it does.
const (
	nibbleBucket  = 32 // bytes of code
	nibbleAlign   = 4  // bytes between places where a method can start
	nibblesInUnit = 8
)

// maxEmptyUnits bounds the walk back over empty units: 64 MB of code without a
// method's start.
const maxEmptyUnits = 1 << 18

// methodStart finds where the method at ip begins. missing is the address of
// a unit of the map that the dump lacks.
func (r *Runtime) methodStart(h *codeHeap, ip arch.Addr) (start arch.Addr, ok bool, missing arch.Addr) {
	rel := uint64(ip - h.MapBase)
	bucket := rel / nibbleBucket
	at := func(bucket uint64, nibble uint32) arch.Addr {
		return h.MapBase + arch.Addr(bucket*nibbleBucket) + arch.Addr(nibble-1)*nibbleAlign
	}
	place := func(i uint64) arch.Addr { return h.HeaderMap + arch.Addr(4*i) }

	unit := bucket / nibblesInUnit
	u, ok := r.u32(place(unit))
	if !ok {
		return 0, false, place(unit)
	}
	if p, ok := r.pointerUnit(h, u); ok {
		return p, true, 0
	}
	u >>= 28 - 4*(bucket%nibblesInUnit)
	if n := u & 15; n != 0 && uint64(n) <= rel%nibbleBucket/nibbleAlign+1 {
		return at(bucket, n), true, 0
	}
	// Not in the bucket of ip itself: the nearest start before it.
	u >>= 4
	first := bucket - bucket%nibblesInUnit // bucket of the unit's highest nibble
	bucket--
	for range maxEmptyUnits {
		for ; u != 0; u, bucket = u>>4, bucket-1 {
			if n := u & 15; n != 0 {
				return at(bucket, n), true, 0
			}
		}
		if first == 0 {
			return 0, false, 0
		}
		first -= nibblesInUnit
		bucket = first + nibblesInUnit - 1
		unit--
		if u, ok = r.u32(place(unit)); !ok {
			return 0, false, place(unit)
		}
		if p, ok := r.pointerUnit(h, u); ok {
			return p, true, 0
		}
		if u == 0 && r.nibbles == nibblePointer {
			return 0, false, 0
		}
	}
	return 0, false, 0
}

// pointerUnit decodes a unit that points to the start of the method that
// covers its whole 256 bytes: its lowest nibble is 9 or more, which no place in
// a bucket is.
func (r *Runtime) pointerUnit(h *codeHeap, u uint32) (arch.Addr, bool) {
	if r.nibbles != nibblePointer || u&15 <= 8 {
		return 0, false
	}
	return h.MapBase + arch.Addr(u&^15) + arch.Addr(u&15-9)*nibbleAlign, true
}
