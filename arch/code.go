package arch

// viewUpTo returns n bytes at a, or as many of them as are at hand before the
// first hole. Instructions are read with it, whose length is not known beforehand:
// x86-64's may have 15 bytes, but the last one of a mapping has fewer behind it.
func viewUpTo(mem Memory, a Addr, n int) []byte {
	for ; n > 0; n-- {
		if b := mem.View(a, n); b != nil {
			return b
		}
	}
	return nil
}

// A wayOut is how code that is followed goes back to its caller.
type wayOut uint8

const (
	returns  wayOut = iota // it returns
	jumpsOut               // it jumps to code that returns for it: a tail call, a PLT entry
)
