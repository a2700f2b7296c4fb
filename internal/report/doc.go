// Package report prints stacks for eyes and for machines.
//
// It needs a session of package managed and a symbolizer, makes values of them
// that hold what the JSON of docs/json.md holds and nothing else, and writes
// these in one of the forms in [outputs]. Threads are walked on several
// goroutines and written in the order of the dump, one at a time, so that the
// whole of a large process never lies in memory.
package report
