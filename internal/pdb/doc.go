// Package pdb reads portable PDBs: which line of which source file the IL of a
// method was compiled from (PortablePdb-Metadata.md of dotnet/runtime, "Portable
// PDB v1.0: Format Specification").
//
// Whether a PDB belongs to an image, package loader decides, by identity.
package pdb
