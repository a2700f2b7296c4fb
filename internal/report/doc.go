// Package report writes stacks, and what else the program finds, for eyes and
// for machines.
//
// It has forms only: it is given values, most of them of package managed/stacks,
// and a writer, and every error that it returns while it writes is the writer's.
// What the JSON of docs/json.md holds is in these values, and nothing else.
// Stacks are written one at a time, in one of the forms in [outputs].
package report
