// Package loader opens a dump and says what it holds: the threads, the memory
// and the code images of one process, and a table for its JIT-compiled methods.
//
// It needs the dump, and a [Finder] for the image files that the dump does not
// hold. It refuses what is no dump, and an image file of another build; what
// is merely missing it reports, and goes on.
package loader
