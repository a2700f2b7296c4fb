// Package unwind goes from a native frame to its caller.
//
// It needs the registers to start from, a memory to read, and the images that
// may hold code; it gives the frames from leaf to root, each with how it was
// found, and always the reason why the walk ended. It knows no dump and no
// runtime: what knows other code is handed in as a [Source].
//
// What it reads: DWARF call frame information (.eh_frame with and without
// .eh_frame_hdr, .debug_frame), PE unwind codes (.pdata), and, for an
// interrupted pc that no table covers, the next few instructions; where a signal
// handler returns to, the registers that the kernel put onto the stack. It does not
// guess: the frame pointer is followed only if [Options].Guess asks for it.
// Where information exists and its bytes are not at hand, the walk ends and
// says which byte was missing.
package unwind
