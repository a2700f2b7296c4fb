package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// A Visibility says what the profiler's walk makes of a method.
type Visibility uint8

const (
	Visible    Visibility = iota
	NoMetadata            // a DynamicMethod: walked, and not reported (MethodDesc::IsNoMetadata)
	Hidden                // an IL stub: passed over in silence (MethodDesc::IsILStub)
)

// Visibility classifies the method of c; missing is the address of the word
// without which that is not known, or 0. Where that is its MethodDesc, other bytes
// may tell: dynamic methods have heaps of their own for their code, code that is
// compiled ahead is of methods that metadata declares, and so are MethodDescs
// that lie close to each other.
func (p *Replay) Visibility(c *Code) (v Visibility, missing arch.Addr) {
	n := &p.r.names
	at := field(c.Method, n.MDFlags)
	flags, ok := p.r.u16(at)
	if !ok {
		switch {
		case p.hostHeap(c):
			return NoMetadata, 0
		case c.Kind == code.ReadyToRun || p.ordinary(c.Method) || p.hooked(c):
			return Visible, 0
		}
		return Visible, at
	}
	switch flags & classMask {
	case classPInvoke, classEEImpl, classArray:
		// They have no IL: what is compiled for them is a stub. A precode led
		// from it to this MethodDesc.
		if c.Kind == code.JIT {
			return Hidden, 0
		}
	case classDynamic:
		at = field(c.Method, n.SigFlags)
		if ext, ok := p.r.u32(at); !ok {
			return NoMetadata, at
		} else if ext&sigILStub != 0 {
			return Hidden, 0
		}
		return NoMetadata, 0
	}
	return Visible, 0
}

// hooked reports whether c calls a profiler's enter hook, as no method without
// metadata does (src/coreclr/vm/jitinterface.cpp of 8.0 to 10.0, GetCompileFlags).
func (p *Replay) hooked(c *Code) bool {
	if c.Kind != code.JIT || p.r.arch.EnterHook == nil {
		return false
	}
	_, is := p.r.arch.EnterHook(p.r.mem, c.Start)
	return is
}

// hostHeap reports whether c lies in a HostCodeHeap, which holds the code of one
// dynamic method or few. It is collectible, as the code of collectible
// assemblies is, but does not begin at a page: a header comes first
// (src/coreclr/vm/dynamicmethod.cpp, HostCodeHeap::InitializeHeapList). So it
// is with all 1,196 dynamic methods of the recorded dumps, and no other of 40,904.
func (p *Replay) hostHeap(c *Code) bool {
	if c.Kind != code.JIT {
		return false
	}
	s, ok, _ := p.r.section(c.Start)
	return ok && s.flags&(rangeCodeHeap|rangeCollectible) == rangeCodeHeap|rangeCollectible && s.span.Lo%pageSize != 0
}

// ordinary reports whether the MethodDesc at md, which the dump lacks, must be
// one of several in a chunk, as those of a class are: the MethodDesc of an IL
// stub has its chunk to itself (ILStubCache::CreateNewMethodDesc,
// src/coreclr/vm/ilstubcache.cpp), and is larger than an ordinary one, as is that
// of a P/Invoke. Others are known by the precodes that lead to them.
func (p *Replay) ordinary(md arch.Addr) bool {
	n := &p.r.names
	if p.r.replayLayout.DynamicSize < 0 {
		return false // nowhere: not known
	}
	x := p.r.orphanIndex()
	list := x.methods
	i, ok := slices.BinarySearchFunc(list, md, precode.compare)
	if !ok {
		return false
	}
	// followed reports whether there is no room for a stub's own, nor for the
	// head of the next chunk, between a MethodDesc and the next.
	followed := func(i int) bool {
		k := i
		for k < len(list) && list[k].by == list[i].by {
			k++
		}
		if k == len(list) || list[k].by-list[i].by >= arch.Addr(p.r.replayLayout.DynamicSize) {
			return false
		}
		p.r.word(field(list[i].at, x.layout.MethodDesc)) // a trim keeps what told
		p.r.word(field(list[k].at, x.layout.MethodDesc))
		return true
	}
	if followed(i) {
		return true
	}
	// The last one of a chunk follows one that is followed so, with no room for
	// the head of another chunk between them.
	k := i - 1
	for k > 0 && list[k-1].by == list[k].by {
		k--
	}
	return k >= 0 && n.MDSize >= 0 && n.ChunkSize >= 0 && md-list[k].by < arch.Addr(n.MDSize+n.ChunkSize) && followed(k)
}
