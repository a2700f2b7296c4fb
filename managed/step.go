package managed

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/unwind"
)

// Start and Next of a Walker give its frames one by one, from the leaf to the root:
//
//	for ok := w.Start(thread); ok; ok = w.Next() {
//		frame, regs := w.Frame(), w.Regs()
//		...
//	}
//
// Frame, Regs and Hijacked say what is known of the frame that the walk is at, Stop
// says why the walk has ended. Leave and Resume lead a walk otherwise. Whoever walks
// step by step guards the process: see [loader.Process.Guard].

// Frame returns the frame that the walk is at. It is the walker's own: Start, Next,
// Leave and Resume overwrite it.
func (w *Walker) Frame() *Frame { return &w.now }

// Stop says why Start, Next, Leave or Resume returned false.
func (w *Walker) Stop() unwind.Stop { return w.stop }

// Regs returns the registers of the frame that the walk is at, as far as they are
// known; of a gap, those of the frame behind the gap. They are the walker's own:
// Start, Next, Leave and Resume overwrite them.
func (w *Walker) Regs() *arch.Regs { return w.native.Regs() }

// Hole returns the address of the word that the dump lacks to say what register r
// holds in the frame that the walk is at; 0 if that is known, or no word says it.
func (w *Walker) Hole(r arch.Reg) arch.Addr { return w.native.Hole(r) }

// Leave moves on to the caller of the frame as Next does, but by unwind
// information and the frame's own code alone: no explicit Frame and no saved frame
// pointer is tried where these do not help. It reports false, and Stop says why,
// where the frame cannot be left so, and where it is the outermost. From a gap it
// moves on to the frame behind the gap.
func (w *Walker) Leave() bool {
	if w.gap {
		w.gap = false
		return w.arrive()
	}
	if w.native.Next() {
		return w.arrive()
	}
	w.halt()
	return false
}

// halt notes why the frame that the walk is at cannot be left by unwind information.
func (w *Walker) halt() {
	w.stop = w.native.Stop()
	w.blame()
}

// Hijacked reports whether the frame was found by a return address that the
// runtime had replaced on the stack: one that Seam knows, and that an unwinder in
// the process would not have found.
func (w *Walker) Hijacked() bool { return w.native.Hijacked() }

// Resume begins anew at a frame of the thread that Start was given, a frame whose
// registers are known otherwise: those of a profiler's callback for one. The pc in
// regs is a return address. It reports false, and Stop says why, if the pc or the
// stack pointer is not known.
func (w *Walker) Resume(regs *arch.Regs) bool {
	w.again()
	if !w.native.Start(regs, false, w.hijacks) {
		w.stop = w.native.Stop()
		return false
	}
	return w.arrive()
}
