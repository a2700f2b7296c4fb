package clr

import "github.com/seamwalk/seam/arch"

// r2rBounds finds the bounds of the method at RUNTIME_FUNCTION c.Index in its
// image's debug information: an array of the native format, by that index. In
// a composite image it belongs to the whole, as the functions do.
func (r *Runtime) r2rBounds(c *Code) (at arch.Addr, n uint32, form boundsForm, ok bool) {
	section, ok := r.wholeSection(c, r2rDebugInfo)
	if !ok {
		return 0, 0, 0, false
	}
	a := nativeArray{r: r, at: c.Base + arch.Addr(section.rva)}
	elem, ok := a.find(c.Index)
	if !ok {
		return 0, 0, 0, false
	}
	// Equal information is kept once: an element is how far back it lies.
	back, next, ok := r.nativeNumber(elem)
	if !ok {
		return 0, 0, 0, false
	}
	if back != 0 {
		next = elem - arch.Addr(back)
	}
	s := nibbleReader{r: r, at: next}
	n = s.number()
	if n == 0 && section.major >= 17 {
		n = s.number()
		s.skip(5)
	} else {
		s.skip(1) // variables
	}
	switch {
	case section.major < 16:
		form = boundsNibbles
	case section.major == 16:
		form = boundsBits2
	default:
		form = boundsBits3
	}
	return s.rest(), n, form, !s.bad
}
