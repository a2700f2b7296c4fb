package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// Inlined returns the calls that the JIT has inlined where pc stands, the innermost
// first. The JIT keeps them only where it was asked to (DOTNET_RichDebugInfo); none
// is returned where it was not, and where what it has kept is missing or broken.
func (r *Runtime) Inlined(pc arch.PC, c *code.Code) []code.Inlined {
	if c.Kind != code.JIT || c.Start == 0 || pc.Lookup() < c.Start {
		return nil
	}
	header, ok := r.word(c.Start - codeHeaderSize)
	if !ok || header <= r.stubLast {
		return nil
	}
	d, _, ok := r.jitDebug(&Code{Code: *c, Header: arch.Addr(header)})
	if !ok {
		return nil
	}
	b := r.bytesOf(d.rich)
	if b == nil {
		return nil
	}
	return inlinedAt(b, uint64(pc.Lookup()-c.Start))
}

// An inlineNode is a node of the tree of a method's inlined calls (ICorDebugInfo::
// InlineTreeNode, src/coreclr/inc/cordebuginfo.h). The first is the method itself.
type inlineNode struct {
	method         arch.Addr // MethodDesc
	il             uint32    // in the caller, of the call that was inlined
	child, sibling uint32    // numbers of nodes; 0: none
}

// Least lengths in nibbles: of a node, whose method has sixteen, and of an entry
// of the map.
const (
	minNodeNibbles  = 16 + 3
	minEntryNibbles = 4
)

// inlinedAt reads rich debug information (CompressRichDebugInfo,
// src/coreclr/vm/debuginfostore.cpp of 8.0 to 10.0): two counts, the nodes, and the
// entries of a map, by native offset, of which each says in which node and where
// in its IL code begins. Numbers are told by how much they differ from the last.
func inlinedAt(b []byte, native uint64) []code.Inlined {
	s := nibbleReader{b: b}
	nodes, entries := uint64(s.number()), uint64(s.number())
	if s.bad || nodes*minNodeNibbles+entries*minEntryNibbles > 2*uint64(len(b)) {
		return nil
	}
	tree := make([]inlineNode, nodes)
	last := inlineNode{il: prologIL}
	for i := range tree {
		n := &tree[i]
		n.method = arch.Addr(s.word())
		n.il = last.il + s.signed()
		n.child, n.sibling = last.child+s.signed(), last.sibling+s.signed()
		last = *n
	}
	var at uint64
	var in, found uint32 // numbers of nodes
	il, foundIL := uint32(prologIL), uint32(noMappingIL)
	for range entries {
		at += uint64(s.number())
		in += s.signed()
		il += s.signed()
		s.number() // source
		if at <= native {
			found, foundIL = in, il
		}
	}
	if s.bad || s.rest() != arch.Addr(len(b)) || foundIL >= firstSpecialIL || uint64(found) >= nodes {
		return nil
	}
	return inlinedInto(tree, found, foundIL)
}

// maxInlined bounds how deep inlined calls may be nested. The JIT stops at 20.
const maxInlined = 64

// inlinedInto returns the calls from node in, whose code stands at il, out to the
// method itself. It is nil for a tree that is none.
func inlinedInto(tree []inlineNode, in, il uint32) (calls []code.Inlined) {
	parents := make([]uint32, len(tree))
	for i := range tree {
		left := len(tree)
		for c := tree[i].child; c != 0; c = tree[c].sibling {
			if int64(c) >= int64(len(tree)) || parents[c] != 0 || left == 0 {
				return nil
			}
			if left--; i > 0 {
				parents[c] = uint32(i)
			}
		}
	}
	for ; in != 0; in = parents[in] {
		n := &tree[in]
		if len(calls) == maxInlined || il >= firstSpecialIL || n.method == 0 {
			return nil
		}
		calls = append(calls, code.Inlined{Method: n.method, ILOffset: il})
		il = n.il
	}
	return slices.Clip(calls)
}

// signed reads a signed number: its last bit says whether it is below zero. It is
// returned as what is to be added to an unsigned one.
func (s *nibbleReader) signed() uint32 {
	v := s.number()
	if v&1 != 0 {
		return -(v >> 1)
	}
	return v >> 1
}

// word reads 64 bits, sixteen nibbles, the lowest first.
func (s *nibbleReader) word() (v uint64) {
	for i := range 16 {
		c, ok := s.byte()
		if !ok {
			s.bad = true
			return 0
		}
		if s.high {
			c >>= 4
			s.at++
		}
		s.high = !s.high
		v |= uint64(c&15) << (4 * i)
	}
	return v
}
