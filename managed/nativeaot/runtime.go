package nativeaot

import (
	"encoding/binary"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A Runtime is NativeAOT's runtime in a program or library that was compiled
// with it. It is safe for concurrent use.
type Runtime struct {
	Version string        // "9.0", "" if not known
	Image   *loader.Image // the program or library

	mem    arch.Memory
	cpu    *arch.Arch
	span   arch.Span   // of the image
	throw  *arch.Throw // nil where the ABI has none
	fields fields
	store  arch.Addr // the ThreadStore; 0 if it is not known
	types  typeRecords

	metadata arch.Span // of the program; empty if it is not known
}

// fields are the places that the runtime is read by, in bytes.
type fields struct {
	List                   int // ThreadStore: the first Thread
	Next, OSID, Exceptions int // Thread
	Previous, Object       int // ExInfo
}

var _ interface {
	code.Runtime
	code.Unwinding
	code.Threading
	code.Throwing
} = (*Runtime)(nil)

// Find returns NativeAOT's runtimes in p. A runtime that was found and cannot be
// read is a warning that says why. In a process with a CoreCLR of its own, which
// may have loaded libraries of NativeAOT's, it does not look: to ask an image may
// cost the opening of a file.
func Find(p *loader.Process) (rts []code.Runtime, warns []loader.Warning) {
	for _, img := range p.Images {
		if hosts[img.ID.Name] {
			return nil, nil
		}
	}
	for _, img := range p.Images {
		if img.Format != p.ABI.NativeFormat {
			continue
		}
		at, _, ok := img.Lookup(headerSymbol)
		if !ok {
			continue
		}
		r, err := open(p, img, at)
		if err != nil {
			warns = append(warns, loader.Warning{Code: "runtime_unreadable", Off: -1,
				Text: fmt.Sprintf("the NativeAOT runtime in %s cannot be read: %v", img.ID.Name, err)})
			continue
		}
		rts = append(rts, r)
	}
	return rts, warns
}

// hosts are the names of CoreCLR's own files.
var hosts = map[string]bool{"libcoreclr.so": true, "coreclr.dll": true, "libcoreclr.dylib": true}

// open reads the runtime in img, whose debug header lies at a.
func open(p *loader.Process, img *loader.Image, a arch.Addr) (*Runtime, error) {
	h, err := readHeader(p.Memory, a, func(a uint64) string { return textAt(img, a) })
	if err != nil {
		return nil, err
	}
	r := &Runtime{Image: img, mem: p.Memory, cpu: p.Arch, span: img.Span(), throw: p.ABI.Throw}
	r.metadata = r.section(sectionMetadata)
	r.Version = r.version()
	return r, r.layouts(h)
}

// layouts takes from the debug header where the fields lie that are read.
func (r *Runtime) layouts(h *header) error {
	// The structure that Thread derives from, which .NET 8 calls ThreadBuffer.
	thread := "RuntimeThreadLocals"
	if _, ok := h.fields[thread+".SIZEOF"]; !ok {
		thread = "ThreadBuffer"
	}
	for _, f := range []struct {
		at   *int
		name string
	}{
		{&r.fields.List, "ThreadStore.m_ThreadList"},
		{&r.fields.Next, thread + ".m_pNext"},
		{&r.fields.OSID, thread + ".m_threadId"},
		{&r.fields.Exceptions, thread + ".m_pExInfoStackHead"},
		{&r.fields.Previous, "ExInfo.m_pPrevExInfo"},
		{&r.fields.Object, "ExInfo.m_exception"},
	} {
		off, ok := h.fields[f.name]
		if !ok || off < 0 || off > maxField {
			return fmt.Errorf("its debug header does not give %s", f.name)
		}
		*f.at = off
	}
	at, ok := h.fields["RuntimeInstance.m_pThreadStore"]
	if instance := h.globals["g_pTheRuntimeInstance"]; ok && instance != 0 {
		v, _ := r.mem.Word(field(instance, at))
		r.store = arch.Addr(v)
	}
	return nil
}

// maxField bounds where in a structure a field may lie.
const maxField = 1 << 16

// field returns the address of the field off bytes into the structure at a.
func field(a arch.Addr, off int) arch.Addr { return a + arch.Addr(off) }

// Info says which runtime r is.
func (r *Runtime) Info() code.Info {
	return code.Info{Kind: "nativeaot", Version: r.Version, Image: r.Image, How: "descriptor"}
}

// Lookup knows no code: that of NativeAOT is native.
func (r *Runtime) Lookup(arch.Addr) (c code.Code, missing arch.Addr) { return c, 0 }

// Describe names nothing: symbols do.
func (r *Runtime) Describe(*code.Code) (code.Method, error) { return code.Method{}, code.ErrNoMethod }

// u32 reads the memory of the process; ok is false where a byte is missing.
func (r *Runtime) u32(a arch.Addr) (uint32, bool) {
	b := r.mem.View(a, 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}
