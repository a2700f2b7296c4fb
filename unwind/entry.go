package unwind

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// entry ends a walk in the functions that a process begins in: _start of the
// program and _start of its dynamic linker. Nothing has called them. Call frame
// information that covers them says so itself (glibc's does, on most CPUs), but
// musl has none for _start, and neither have older toolchains, such as the one that
// .NET for ARM64 is linked with. Then they are known by their addresses.
type entry struct {
	arch    *arch.Arch
	entries func() []arch.Addr // asked when first needed
}

func openEntry(u *Unwinder, _ Image) Source {
	if u.entries == nil {
		return nil
	}
	return entry{u.arch, bin.OnceValue(u.entries)}
}

// How far from an entry point a pc is still in its function. The C library's
// _start has 30 to 60 bytes and calls __libc_start_main, then abort if that
// returns; the dynamic linker's has up to 200, and calls _dl_start and _dl_init.
const (
	entryReach = 256
	entryCalls = 2
)

func (e entry) Unwind(s *Step) Outcome {
	calls := entryCalls
	if s.PC.Exact {
		calls-- // behind a call that does not return another function may begin
	}
	for _, at := range e.entries() {
		if s.PC.Addr < at || s.PC.Addr-at > entryReach {
			continue
		}
		n, ok := e.arch.Straight(s.Mem, at, s.PC.Addr)
		if ok && n <= calls && (s.PC.Exact || n > 0 && e.arch.AfterCall(s.Mem, s.PC.Addr)) {
			return Final
		}
	}
	return NoInfo
}
