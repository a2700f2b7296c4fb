package clr

import "github.com/seamwalk/seam/arch"

// Bits of a MethodDesc and of what follows it, by its class
// (src/coreclr/vm/method.hpp of .NET 8 to 10).
const (
	classMask         = 7 // of Flags: MethodClassification
	classPInvoke      = 2
	classEEImpl       = 3
	classArray        = 4
	classInstantiated = 5
	classDynamic      = 7

	// Optional slots behind a MethodDesc, in this order (of Flags,
	// mdfHasNonVtableSlot and its neighbours).
	hasNonVtableSlot  = 0x08
	hasMethodImpl     = 0x10
	hasNativeCodeSlot = 0x20

	// Its precode leads to the code of another method: one that takes a boxed this
	// has that in Flags3AndTokenRemainder, an instantiation over types of which the
	// code is shared in its kind (MethodDesc::IsWrapperStub).
	unboxing = 0x4000

	instKind       = 7 // of InstantiatedMethodDesc.Flags2
	instDefinition = 1 // the generic method itself: no arguments
	instWrapper    = 4

	sigILStub = 0x8000 // of StoredSigMethodDesc.ExtendedFlags; DynamicMethods have 0x4000

	tokenRowBits = 24
)

// methodClass returns the class of the MethodDesc at md: classPInvoke and the like,
// 0 for a method with IL.
func (r *Runtime) methodClass(md arch.Addr) (class uint16, ok bool) {
	flags, ok := r.u16(field(md, r.names.MDFlags))
	return flags & classMask, ok
}

// chunk returns the head of the chunk that md lies in, at index: MethodDescs
// lie in chunks, behind a head that says what they share, the MethodTable and
// the high bits of their tokens.
func (r *Runtime) chunk(md arch.Addr, index uint8) arch.Addr {
	return md - arch.Addr(uint64(index)*r.names.align) - arch.Addr(r.names.ChunkSize)
}
