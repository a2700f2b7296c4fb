// Package code is what a managed runtime says of the code in a process.
//
// A walk of stacks (package managed) meets code of runtimes: a just-in-time
// compiler's methods, code compiled ahead of time, stubs. It asks each runtime
// of the process what lies at an address, and needs a [Runtime] for that: three
// methods. A runtime that knows more, as how its code is left, which threads it
// has or what it keeps on their stacks, says so by one of the optional
// interfaces: [Unwinding], [Completing], [Listing], [Threading], [Framing],
// [Replacing], [Mapping], [Inlining], [Throwing], [Ending] and [Naming].
//
// CoreCLR (package managed/clr) satisfies all of them. A perf map, a table of
// address ranges and names, satisfies [Runtime] and [Listing].
package code
