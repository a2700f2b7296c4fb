// Seam shows every thread's whole stack in a dump of a process that is part
// native, part managed.
package main

func main() {}
