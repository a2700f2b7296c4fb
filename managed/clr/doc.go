// Package clr reads CoreCLR out of a dump: its threads, its code, the names of
// its methods, its explicit Frames, its debug information.
//
// It needs the process and nothing of the runtime's own tools: layouts come
// from the data-contract descriptor that the runtime carries, from a table of
// known builds, or, of .NET 9, whose descriptor says nothing of code, and of .NET 8,
// which has none, from a table of releases that is held against the process. It refuses a runtime that
// it has no layout for, and says so; a structure that is half there gives what can be
// read of it, and a contract that lacks fields all that does not need them.
package clr
