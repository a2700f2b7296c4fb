// Package nativeaot reads the runtime of a program that was compiled ahead of
// time by .NET's NativeAOT: its threads, and the exceptions that they have in
// progress. It finds them by the runtime's debug header.
//
// Code of such a program is native code: it has call frame information and
// symbols, by which it is walked and named. This package adds the one thing that
// no unwind information says: which code a fault in managed code came from.
package nativeaot
