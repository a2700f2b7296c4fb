package arch

// A flowStep is what one instruction means to somebody who follows the flow of code.
type flowStep struct {
	kind   flowKind
	tail   bool   // code that takes the frame down may begin here
	writes RegSet // of the stack pointer and the frame pointer, those that it changes
	next   Addr   // the instruction behind it
	to     Addr   // of flowJump and flowBranch
}

type flowKind uint8

const (
	flowNext   flowKind = iota // the instruction behind it runs next; a call comes back
	flowJump                   // the one at to does
	flowBranch                 // either
	flowEnd                    // none that is known: a switch, a breakpoint, a byte that is missing
)

// A flow is how a CPU's code is followed from a return address.
type flow struct {
	step  func(mem Memory, at Addr) flowStep
	leave func(mem Memory, at Addr, r *Rule) bool // as Arch.Leave
}

// Bounds of one flow: how many instructions are followed, taken for the first of
// those that take the frame down, kept for later as ways, and remembered as
// places that ways lead to. Most ways end after a dozen instructions.
const (
	flowSteps = 1024
	flowTails = 64
	flowWays  = 32
	flowSeen  = 128
)

// leaveBody follows the code from the return address pc to the instructions that
// take the frame down, an epilogue, and fills r with the way to the caller that these
// give. Where it reports false, r means nothing. Three facts about code of CoreCLR's
// JIT, bodies and funclets alike, make a rule of the epilogue right at pc too:
//
//   - between prologue and epilogue the stack pointer stays where it is but for
//     stackalloc, whose functions take the frame down from the frame pointer:
//     a way that changes the register that the rule counts from is given up;
//   - a call that does not come back has a breakpoint or code of the same
//     function behind it, so that no way leads out of the function
//     (src/coreclr/jit/codegenlinear.cpp, BBJ_THROW, and genCallFinally);
//   - a register that a callee must keep, and that the epilogue does not load,
//     has not been changed since the function's first byte.
func (f *flow) leaveBody(mem Memory, pc Addr, r *Rule) bool {
	type way struct {
		at   Addr
		lost RegSet // changed on the way here
	}
	var (
		ways  [flowWays]way
		seen  [flowSeen]Addr
		nseen int
	)
	met := func(a Addr) bool {
		for _, s := range seen[:nseen] {
			if s == a {
				return true
			}
		}
		if nseen < flowSeen {
			seen[nseen] = a
			nseen++
			return false
		}
		return true // or a loop would not end
	}
	ways[0] = way{at: pc}
	steps, tails := flowSteps, flowTails
	for n := 1; n > 0; {
		n--
		for w := ways[n]; ; {
			if steps--; steps < 0 {
				return false
			}
			s := f.step(mem, w.at)
			if s.tail {
				if tails--; tails < 0 {
					return false
				}
				if f.leave(mem, w.at, r) && !w.lost.Has(r.Base) {
					return true
				}
			}
			w.lost |= s.writes
			w.at = s.next
			if s.kind == flowBranch && n < flowWays && !met(s.to) {
				ways[n] = way{s.to, w.lost}
				n++
			}
			if s.kind == flowJump {
				w.at = s.to
			}
			if s.kind == flowEnd || s.kind == flowJump && met(s.to) {
				break
			}
		}
	}
	return false
}
