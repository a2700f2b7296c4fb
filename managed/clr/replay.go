package clr

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A Replay reads what the runtime's own stack walk looks at and a physical walk
// does not: which methods it hides, what its Frames count for, how far an
// exception has come. It is read-only, and safe for concurrent use.
type Replay struct {
	r      *Runtime
	layout replayLayout
	frames replayFrames
	ex     *exInfoRow // nil if nothing is known of this version
	major  int        // of the runtime's version; 0 if not known
}

// replayLayout is what every descriptor so far leaves out, or that only a
// replay needs; what names need too is in nameLayout. Where a default stands, it
// held in .NET 8 to 10 on every platform seen.
type replayLayout struct {
	PInvokeSize int `c:"PInvokeMethodDesc.!,56"`
	DynamicSize int `c:"DynamicMethodDesc.!,48"`
	HdrEHInfo   int `c:"RealCodeHeader.EHInfo,8"` // right before GCInfo
}

// Replay returns what a replay of the runtime's walk needs. It never fails:
// what the runtime does not tell, the answers say.
func (r *Runtime) Replay() *Replay {
	p := &Replay{r: r}
	// Every field has a default, or is optional: fill cannot fail on them.
	_ = r.data.fill(&p.layout)
	_ = r.data.fill(&p.frames)
	p.major = r.major()
	p.ex, _ = r.exInfo()
	return p
}

// MethodTable returns the MethodTable of the class that md belongs to; missing
// is the address of the word that the dump lacks to tell, or 0.
func (p *Replay) MethodTable(md arch.Addr) (mt, missing arch.Addr) {
	at := field(md, p.r.names.MDIndex)
	index, ok := p.r.u8(at)
	if !ok {
		return 0, at
	}
	return p.pointer(field(p.r.chunk(md, index), p.r.names.ChunkMT))
}

// dispatchers are the classes whose methods dispatch exceptions since .NET 9,
// which the runtime binds at its start (src/coreclr/vm/corelib.h, CLASS__EH and
// its neighbours). Its walk does not report them, though they lie on the stack
// and are good seeds. The second shows where it is no mere transition, under
// the enter and leave hooks of a profiler.
var dispatchers = []string{
	"System.Runtime.EH",
	"System.Runtime.ExceptionServices.InternalCalls",
	"System.Runtime.StackFrameIterator",
}

// Dispatcher reports whether mt is a class of the managed exception dispatcher.
// An error says what the dump lacks to tell.
func (p *Replay) Dispatcher(mt arch.Addr) (bool, error) {
	name, err := p.r.className(mt)
	return err == nil && slices.Contains(dispatchers, name), err
}

// A ContextLayout is what there is to know of a runtime's CONTEXT besides where
// registers lie, which arch has.
type ContextLayout struct {
	Arch    string
	FlagsAt int    `json:"flags_at"` // ContextFlags, 4 bytes
	Whole   uint32 // ContextFlags of a CONTEXT with all integer and control registers
	Unwound uint32 // CONTEXT_UNWOUND_TO_CALL, which unwinding sets; 0 where it does not
	XState  uint32 // CONTEXT_XSTATE, which is lost when a Frame's CONTEXT is copied; 0 where it is not
	Base    int    // bytes of the CONTEXT that every build has, Windows' own
	Size    int    // sizeof(CONTEXT) of this runtime's build
	Sizes   []struct {
		OS    string
		Since int // major version
		Size  int
	}
	// Syscalls are the instructions that call the system: how they begin, in
	// hex, and their size. The second one of x86-64, a call through a fixed
	// address, is wine's.
	Syscalls []struct {
		Begin string
		Size  int
	}
	// Argument is the register of a system call's first argument on Linux.
	Argument string
}

// contextLayouts is layouts/contexts.json: what callbacks of the versions
// named in it were given, the newest first.
var contextLayouts = sync.OnceValue(func() (rows []ContextLayout) {
	// The table is part of the program: TestContextLayouts reads all of it.
	text, _ := layouts.ReadFile("layouts/contexts.json")
	_ = json.Unmarshal(text, &rows)
	return rows
})

// Context returns the layout of this runtime's CONTEXT: on Windows the
// operating system's, elsewhere the PAL's, which grew with the versions; ok is
// false for a CPU without one.
func (p *Replay) Context() (l ContextLayout, ok bool) {
	for _, l = range contextLayouts() {
		ok = ok || l.Arch == p.r.arch.Name
		if ok {
			break
		}
	}
	// .NET 8 and 9 hand the bit on to callbacks, 10 does not.
	if p.major != 0 && p.major < 10 {
		l.XState = 0
	}
	for _, s := range l.Sizes {
		if l.Size == 0 && s.OS == p.r.proc.ABI.OS && p.major >= s.Since {
			l.Size = s.Size
		}
	}
	// A descriptor that lays out the Frame of a managed throw knows better: the
	// CONTEXT is that Frame's last field.
	size, ok1 := p.r.data.offsets["SoftwareExceptionFrame.!"]
	at, ok2 := p.r.data.offsets["SoftwareExceptionFrame.TargetContext"]
	if ok1 && ok2 && size-at >= l.Base {
		l.Size = size - at
	}
	l.Size = max(l.Size, l.Base)
	return l, ok
}

// AfterSyscall reports whether a system call is right before pc, to which it
// then returns.
func (p *Replay) AfterSyscall(pc arch.Addr) bool {
	l, _ := p.Context()
	for _, s := range l.Syscalls {
		b := p.r.mem.View(pc-arch.Addr(s.Size), s.Size)
		if b != nil && strings.HasPrefix(hex.EncodeToString(b), s.Begin) {
			return true
		}
	}
	return false
}

// SyscallArgument returns the first argument of the system call that regs are
// of, 0 if it is not known: for futex, the word that is waited for.
func (p *Replay) SyscallArgument(regs *arch.Regs) arch.Addr {
	l, _ := p.Context()
	for i, name := range p.r.arch.Names {
		if name == l.Argument {
			v, _ := regs.Get(arch.Reg(i))
			return arch.Addr(v)
		}
	}
	return 0
}

// Suspender returns the Thread that suspends the runtime, for a collection or
// for a profiler, 0 if none does, and the variable that holds it
// (ThreadSuspend::g_pSuspensionThread).
func (p *Replay) Suspender() (at, thread arch.Addr) {
	at, ok := p.r.data.pointer("GCThread")
	if !ok {
		return 0, 0
	}
	v, _ := p.r.word(at)
	return at, arch.Addr(v)
}

// PInvokeImage returns the image of the native function that the P/Invoke of an
// InlinedCallFrame calls, nil if that is not known: one of the pointers in its
// PInvokeMethodDesc leads there.
func (p *Replay) PInvokeImage(f Frame) *loader.Image {
	v, ok := p.r.word(field(f.Addr, p.frames.Datum))
	if !ok || v == 0 || v&inlinedMarkers != 0 {
		return nil
	}
	md := arch.Addr(v)
	flags, ok := p.r.u16(field(md, p.r.names.MDFlags))
	if !ok || flags&methodClassMask != methodPInvoke {
		return nil
	}
	for off := p.r.names.MDSize; off+8 <= p.layout.PInvokeSize; off += 8 {
		if v, ok := p.r.word(field(md, off)); ok && v != 0 {
			if img := p.r.proc.ImageAt(arch.Addr(v)); img != nil && img != p.r.Image && img.Format == p.r.Image.Format {
				return img
			}
		}
	}
	return nil
}

// forbidSuspendBack is how far before Thread's link the count of its
// forbid-suspend regions lies: seen on Windows, derived elsewhere.
const forbidSuspendBack = 56

// maxForbidSuspend bounds that count, which nests a few levels: a larger number
// is another field.
const maxForbidSuspend = 256

// ForbidsSuspension reports whether t is in a region in which the runtime lets
// nobody suspend it (Thread::m_dwForbidSuspendThread); missing is the address of
// the word that the dump lacks to tell, or 0.
func (p *Replay) ForbidsSuspension(t *Thread) (forbids bool, missing arch.Addr) {
	at := field(t.Addr, p.r.threadLayout.Link-forbidSuspendBack)
	n, ok := p.r.u32(at)
	if !ok {
		return false, at
	}
	return n > 0 && n < maxForbidSuspend, 0
}

// InRuntime reports whether a lies in the runtime's own image.
func (p *Replay) InRuntime(a arch.Addr) bool { return p.r.Image.Span().Has(a) }
