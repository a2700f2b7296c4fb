// Package loader opens a dump and says what it holds: the threads, the memory
// and the code images of one process.
//
// It needs the dump, and a [Finder] for the image files that the dump does not
// hold. It refuses what is no dump, and an image file of another build; what
// is merely missing it reports, and goes on.
//
// Opening reads headers and notes only, so it costs the same for a dump of any
// size. Bytes of memory come from the dump where it has them, else from the
// file that was mapped there, if the process cannot have changed them since: a
// [Memory] says of every byte whether it is at hand, and why not. What a file
// holds besides is asked of the [Image]: sections that are not mapped, and what
// writable memory held when it had just been loaded.
//
// A process that was opened with Options.Track can write a core that holds just
// what was read of it, from the dump and from files alike.
package loader
