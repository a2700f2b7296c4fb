// Package ecma reads ECMA-335 metadata and portable PDB out of the memory of a process.
package ecma
