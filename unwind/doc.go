// Package unwind goes from a native frame to its caller.
//
// It needs the registers to start from, a memory to read, and the images that
// may hold code; it gives the frames from leaf to root, each with how it was
// found, and always the reason why the walk ended. It knows no dump and no
// runtime: what knows other code is handed in as a [Source].
package unwind
