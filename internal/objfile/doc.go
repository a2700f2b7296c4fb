// Package objfile reads ELF and PE files as such: headers, sections, symbols,
// notes, the dynamic section, relocations, exports, and where the tables for
// unwinding lie. It knows nothing of processes and dumps.
//
// What a process has mapped and what only the file has are read by the same
// code. Tables that are mapped (the dynamic section, hash tables of symbols,
// .eh_frame_hdr, PE exports) are read through a [Reader], which is the memory
// of a process or an [Image] of a file. What is never mapped (section headers,
// .symtab, debugging information) is read from the bytes of the file.
//
// A file is untrusted. What it claims is held against the bytes that are there
// before room is made for it, every loop has a bound, and an answer is either
// right by the file's own headers or none.
package objfile
