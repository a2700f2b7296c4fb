package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// frameClasses returns the vtables of the classes of explicit Frames, by the names of
// the classes, where their entries are by places away from their numbers. lost says
// that the dump lacks one of the entries: the class is not among them then.
func (t *variableTable) frameClasses(by int) (vtables map[string]arch.Addr, lost, ok bool) {
	vtables = make(map[string]arch.Addr, len(t.row.vtables))
	for name, k := range t.row.vtables {
		if !slices.Contains(frameNames[:], name) {
			continue
		}
		n := int(k) + by
		switch v, ok := t.entry(n); {
		case ok:
			vtables[name] = v
		case n < 0 || n >= t.entries || t.r.mem.View(t.at+arch.Addr(8*n), 8) != nil:
			return nil, false, false
		default:
			lost = true
		}
	}
	return vtables, lost, true
}

// maxSampledFrames bounds the Frames of one thread that are looked at.
const maxSampledFrames = 16

// held reports whether the explicit Frames of the first threads bear vtables out.
// The topmost ones are of classes among them, but for a few: a thread may have been
// stopped while it made one. And the Frames that lead to another frame lead to code
// of the runtime's map, most of them: of another class they would be read in other
// places. Where there is no Frame to say so, they are as the row has them, and not moved.
func (t *variableTable) held(vtables map[string]arch.Addr, moved bool) bool {
	kinds := make(map[uint64]FrameKind, len(vtables))
	for k, name := range frameNames {
		if v, ok := vtables[name]; ok {
			kinds[uint64(v)] = FrameKind(k)
		}
	}
	r := t.r
	ts, _ := r.threadList(sampled)
	with, known, leading, led := 0, 0, 0, 0
	for i := range ts {
		a := ts[i].Frame
		for n := 0; n < maxSampledFrames && a != code.EndOfFrames && a != 0; n++ {
			id, ok1 := r.word(field(a, r.frameLayout.Identifier))
			next, ok2 := r.word(field(a, r.frameLayout.Next))
			if !ok1 || !ok2 {
				break
			}
			kind := kinds[id]
			if n == 0 {
				with++
				if kind != UnknownFrame {
					known++
				}
			}
			switch t.leads(Frame{Addr: a, Next: arch.Addr(next), Kind: kind}) {
			case confirmed:
				leading++
				led++
			case refuted:
				leading++
			}
			if arch.Addr(next) <= a {
				break
			}
			a = arch.Addr(next)
		}
	}
	if moved {
		return 4*known > 3*with && led > 0 && 10*led >= 9*leading
	}
	return (with == 0 || 4*known > 3*with) && 4*led >= 3*leading
}

// leads reports whether f leads to code that the runtime's map has; unknown for a
// Frame that leads nowhere.
func (t *variableTable) leads(f Frame) verdict {
	r := t.r
	switch {
	case f.Kind == InlinedCallFrame:
		if ra, ok := r.word(field(f.Addr, r.frameLayout.InlinedRA)); ok && ra == 0 {
			return unknown // it is set up, and in no call
		}
	case !f.Kind.savesRegs():
		return unknown
	}
	var regs arch.Regs
	if _, ok := r.restore(f, &regs); !ok {
		return refuted
	}
	pc, _ := regs.Get(r.arch.PC)
	if _, ok, missing := r.section(arch.Addr(pc)); ok {
		return confirmed
	} else if missing != 0 {
		return unknown
	}
	return refuted
}
