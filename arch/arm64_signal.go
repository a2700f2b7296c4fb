package arch

// arm64Access finds struct esr_context among the records behind the registers, and
// reads the exception class and the bit WnR of the fault's syndrome (sigcontext.h;
// Arm Architecture Reference Manual, ESR_EL1).
func arm64Access(mem Memory, context Addr) Access {
	const records, size, esrMagic = 464, 4096, 0x45535201
	for off := Addr(0); off < size; {
		head, ok := mem.Word(context + records + off)
		magic, length := uint32(head), Addr(head>>32)
		if !ok || magic == 0 || length < 16 {
			break
		}
		if magic == esrMagic {
			esr, ok := mem.Word(context + records + off + 8)
			return arm64Syndrome(esr, ok)
		}
		off += length
	}
	return AccessUnknown
}

// arm64Syndrome says what an exception syndrome tells of the access.
func arm64Syndrome(esr uint64, ok bool) Access {
	const instruction, data, writes = 0x20, 0x24, 1 << 6 // aborts; one more for those at the same level
	switch class := esr >> 26 & 0x3e; {
	case !ok:
	case class == instruction:
		return AccessExecute
	case class == data && esr&writes != 0:
		return AccessWrite
	case class == data:
		return AccessRead
	}
	return AccessUnknown
}
