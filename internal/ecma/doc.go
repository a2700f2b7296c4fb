// Package ecma reads ECMA-335 metadata where it lies in the memory of a
// process: names of types and methods, their signatures, a module's identity.
//
// It reads only what it is asked for, row by row and word by word, so that a
// cut dump still gives every name whose bytes it has, and so that a trimmed
// dump need hold no more. What is missing or broken is an [*Error] with its
// address. Section numbers in comments are those of ECMA-335, 6th edition.
package ecma
