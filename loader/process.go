package loader

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
)

// A Process is a process as its dump has it. It is read-only once opened and
// may be used by many goroutines.
type Process struct {
	Path     string     // of the dump, as it was given to Open
	Format   string     // "elf-core"
	ABI      *arch.ABI  // of the operating system that the process ran on, and of its CPU
	Arch     *arch.Arch // ABI.Arch
	PID      int
	Name     string // of the process, cut to 15 bytes by the kernel; "" when the dump has none
	Memory   *Memory
	Images   []*Image  // by address, not overlapping
	Threads  []Thread  // in the order of the dump
	Crash    *Crash    // what ended or interrupted the process; nil when the dump does not say
	Warnings []Warning // found on opening; see Problems
	// RuntimeHint is the base of the runtime's image if createdump wrote the
	// dump and found it, else 0.
	RuntimeHint arch.Addr

	pointers pointers
	program  program
	core     *coreFile // of an ELF core: what a trim copies, and the auxiliary vector; nil for other formats
	held     *held
	find     Finder       // looks for files that the dump does not hold; nil: none
	pdbs     sync.Map     // *PDB by the base of the image
	embedded atomic.Int64 // bytes of embedded PDBs that were unpacked
	mu       sync.Mutex
	late     []Warning
}

// newProcess returns a process of an operating system and its CPU, whose files
// opt.Find finds and opt.held holds. A format of dumps fills in the rest.
func newProcess(abi *arch.ABI, opt *Options) *Process {
	p := &Process{ABI: abi, Arch: abi.Arch, Memory: &Memory{held: opt.held, gate: abi.Gate}, held: opt.held, find: opt.Find}
	p.held.has(p.Memory)
	p.held.warn = func(text string) { p.warnLate("file_lost", "%s", text) }
	return p
}

// Problems returns the warnings found on opening and those that came up since,
// as of an image file that was refused. It may be called at any time.
func (p *Process) Problems() []Warning {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clip(p.Warnings), p.late...)
}

// maxWarnings bounds the warnings of one dump, of which a broken one could have
// as many as it has bytes.
const maxWarnings = 1000

// warn adds a warning to the process; off is in the dump, or -1.
func (p *Process) warn(code string, off int64, format string, args ...any) {
	switch n := len(p.Warnings); {
	case n < maxWarnings:
		p.Warnings = append(p.Warnings, Warning{code, off, fmt.Sprintf(format, args...)})
	case n == maxWarnings:
		p.Warnings = append(p.Warnings, Warning{"limit", -1, "there are more warnings than these; they are left out"})
	}
}

// warnLate adds a warning after opening.
func (p *Process) warnLate(code, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, Warning{code, -1, fmt.Sprintf(format, args...)})
}

// A Crash is the signal (Linux) or exception (Windows) that the dump was made for.
type Crash struct {
	Thread  uint32    // its TID
	Signal  uint32    // signal number or exception code
	Code    int32     // si_code; 0 on Windows
	Address arch.Addr // the address that could not be accessed
	HasAddr bool      // whether the signal has an address at all
}

// A Thread is one thread and the registers it stopped with.
type Thread struct {
	ID   uint32
	Name string // "" when the dump has none, as all ELF cores
	Regs arch.Regs
	// TLS is the thread pointer (fs base on x86-64), or 0.
	TLS arch.Addr
}

// A Warning is something the dump should have and does not, or has broken.
// The process can still be used; Text says what will be missing from results.
type Warning struct {
	Code string // a stable name, as "core_cut"
	Off  int64  // in the dump, or -1
	Text string
}

// Musl reports whether the process runs on musl, the C library of Alpine Linux: by
// the name of its dynamic linker.
func (p *Process) Musl() bool {
	return slices.ContainsFunc(p.Images, func(m *Image) bool { return strings.HasPrefix(m.ID.Name, "ld-musl-") })
}

// ImageAt returns the image whose span holds a, or nil.
func (p *Process) ImageAt(a arch.Addr) *Image {
	i := sort.Search(len(p.Images), func(i int) bool { return p.Images[i].span.Hi > a })
	if i < len(p.Images) && p.Images[i].span.Has(a) {
		return p.Images[i]
	}
	return nil
}

// Close releases the files that the process is read from. What is going on in
// [Process.Guard], as every walk is, finds memory missing from now on and ends
// soon; the files are released when it has ended, which Close does not wait for.
// Slices of memory that came from the process may not be used afterwards.
func (p *Process) Close() error {
	if p.held == nil {
		return nil
	}
	return p.held.close()
}
