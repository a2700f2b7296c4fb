// Package symbolize turns addresses into names.
//
// It needs a process from the loader, and the registers' own idea of a pc: a
// return address is looked up one byte before it, inside the call. Native names
// come from the sources in [sources], asked in order; managed ones from what
// the runtime says of a method. It refuses to guess: a pc behind the end of a
// symbol that has a size is not in that symbol, and has no name.
package symbolize
