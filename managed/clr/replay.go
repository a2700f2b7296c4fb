package clr

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A Replay reads what the runtime's own stack walk looks at and a physical walk
// does not: which methods it hides, what its Frames count for, how far an
// exception has come. It is read-only, and safe for concurrent use.
type Replay struct {
	r  *Runtime
	ex *exInfoLayout // nil if it is not known where this runtime has the fields
}

// replayLayout is what only a replay needs; what names need too is in nameLayout.
type replayLayout struct {
	PInvokeSize int `c:"PInvokeMethodDesc.!"`
	DynamicSize int `c:"DynamicMethodDesc.!"`
	HdrEHInfo   int `c:"RealCodeHeader.EHInfo"` // right before GCInfo
}

// Replay returns what a replay of the runtime's walk needs. It never fails:
// what the runtime does not tell, the answers say.
func (r *Runtime) Replay() *Replay {
	return &Replay{r: r, ex: r.exInfo}
}

// MethodTable returns the MethodTable of the class that md belongs to; missing
// is the address of the word without which that is not known, or 0.
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
// An error says what the dump lacks.
func (p *Replay) Dispatcher(mt arch.Addr) (bool, error) {
	name, err := p.r.className(mt)
	return err == nil && slices.Contains(dispatchers, name), err
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
	v, ok := p.r.word(field(f.Addr, p.r.replayFrames.Datum))
	if !ok || v == 0 || v&inlinedMarkers != 0 {
		return nil
	}
	md := arch.Addr(v)
	if class, ok := p.r.methodClass(md); !ok || class != classPInvoke || p.r.names.MDSize < 0 {
		return nil
	}
	for off := p.r.names.MDSize; off+8 <= p.r.replayLayout.PInvokeSize; off += 8 {
		if v, ok := p.r.word(field(md, off)); ok && v != 0 {
			if img := p.r.proc.ImageAt(arch.Addr(v)); img != nil && img != p.r.Image && img.Format == p.r.Image.Format {
				return img
			}
		}
	}
	return nil
}

// maxForbidSuspend bounds the count of a thread's forbid-suspend regions, which
// nest a few levels: a larger number is another field.
const maxForbidSuspend = 256

// ForbidsSuspension reports whether t is in a region in which the runtime lets
// nobody suspend it (Thread::m_dwForbidSuspendThread); missing is the address of
// the word without which that is not known, or 0.
func (p *Replay) ForbidsSuspension(t *code.Thread) (forbids bool, missing arch.Addr) {
	at := field(t.Addr, p.r.threadLayout.NoSuspend)
	n, ok := p.r.u32(at)
	if !ok {
		return false, at
	}
	return n > 0 && n < maxForbidSuspend, 0
}

// InRuntime reports whether a lies in the runtime's own image.
func (p *Replay) InRuntime(a arch.Addr) bool { return p.r.Image.Span().Has(a) }
