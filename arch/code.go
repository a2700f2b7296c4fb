package arch

// viewUpTo returns n bytes at a, or as many of them as are at hand before the
// first hole. Code is read with it: the last instruction of a mapping is
// shorter than the longest one there can be.
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
