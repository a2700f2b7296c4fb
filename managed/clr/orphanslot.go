package clr

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// nativeCode returns the code of an ordinary method that has a slot for it, else 0,
// as mem has it.
func (r *Runtime) nativeCode(mem *loader.Memory, md arch.Addr) arch.Addr {
	b := mem.View(field(md, r.names.MDFlags), 2)
	if b == nil {
		return 0
	}
	flags := binary.LittleEndian.Uint16(b)
	if flags&classMask != 0 || flags&hasNativeCodeSlot == 0 {
		return 0
	}
	at := field(md, r.names.MDSize)
	if flags&hasNonVtableSlot != 0 {
		at += 8
	}
	if flags&hasMethodImpl != 0 {
		at += 16 // two pointers: the slots that it implements, and the methods
	}
	v, _ := mem.Word(at)
	return arch.Addr(v)
}

// slotMethod returns the one method of all that Modules define whose slot has the
// code at start, 0 if there is none: where the dump lacks the precode too, the
// MethodDesc itself still tells.
func (r *Runtime) slotMethod(start arch.Addr) arch.Addr {
	x := &r.orphans
	x.slotted.Do(func() {
		x.slots = map[arch.Addr]arch.Addr{}
		all := r.mem.Untracked()
		for md := range r.definitions() {
			at := r.nativeCode(all, md)
			if _, twice := x.slots[at]; twice {
				x.slots[at] = 0
			} else {
				x.slots[at] = md
			}
		}
	})
	md := x.slots[start]
	if md == 0 || start == 0 {
		return 0
	}
	// Of all that was read, a trim keeps what led to this one.
	r.definition(md)
	r.nativeCode(r.mem, md)
	return md
}
