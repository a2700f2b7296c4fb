// Package managed sews native runs and managed frames into one stack.
//
// It needs a process from the loader. It walks each thread physically, native
// frames by the unwinder and managed ones by their unwind codes, and puts a gap
// that says why where information is lost, going on from the runtime's
// explicit Frames. It refuses nothing: a process without a runtime gives
// native stacks.
package managed
