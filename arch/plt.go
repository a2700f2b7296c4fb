package arch

// A PLTEntry is one entry of a procedure linkage table: code that jumps to where
// a slot of the global offset table points, which the dynamic linker fills in.
type PLTEntry struct {
	At, End LinkAddr
	// Slot is the slot of the global offset table, 0 where the entry has none: it
	// then pushes Index, the number of its relocation in .rela.plt, and leaves the
	// rest to the dynamic linker. Index is -1 where there is a slot.
	Slot  LinkAddr
	Index int
}
