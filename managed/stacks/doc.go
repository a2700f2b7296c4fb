// Package stacks gives the stacks of a process as plain values, with names.
//
// It needs a session of package managed:
//
//	process, err := loader.Open(path, nil)   // the dump
//	session := managed.Open(process, nil)    // its runtimes
//	named := stacks.Of(session, nil)         // its threads, walked and named
//	for thread := range named.All() { ... }
//
// A [Thread] has all its frames, native and managed in one list, from the leaf
// to the root, and the reason why the stack ends. A [Frame] says where it is,
// how it was found and what the code there is called. [Stacks.Summary] says what
// is missing, and which file would supply it. [Stacks.Cause] says what ended a
// process that crashed, and a thread's [Exception] has what led to it and its
// stored stack trace.
//
// Stacks are walked on several goroutines and handed out one at a time, so that
// the whole of a large process never lies in memory.
package stacks
