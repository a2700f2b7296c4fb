package arch

// FollowStep returns how long the instruction at at is, 0 if it is not known,
// and whether it is a call, for tests of other packages' code.
func FollowStep(a *Arch, mem Memory, at Addr) (n int, call bool) {
	if a == ARM64 {
		w, ok := arm64Word(mem, at)
		if !ok {
			return 0, false
		}
		return 4, arm64IsCall(w)
	}
	b := viewUpTo(mem, at, 15)
	if n := amd64VEXLen(b); n > 0 {
		return n, false
	}
	in, ok := amd64Decode(b)
	if !ok {
		return 0, false
	}
	return in.Len, in.Op.String() == "CALL"
}
