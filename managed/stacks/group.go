package stacks

import (
	"errors"
	"hash/maphash"
	"iter"
)

// A Grouped is one stack, and the threads that stand in it.
type Grouped struct {
	Threads []uint32 // their TIDs, in the order in which they came
	Stack   *Thread  // the first of them; it is a copy, and nothing overwrites it
}

// Group puts threads together whose stacks are equal, in the order of the first
// of each group. Two stacks are equal if they end for the same reason and their
// frames are alike one by one: of the same kind, in the same module and with the
// same name, wherever in the function the pc lies. Frames without a name are
// alike only if they stand at the same pc. So the 200 threads of a pool that all
// wait for work are one group.
//
// [Stacks.Groups] groups all threads of a process. Where [Options.Limit] cut stacks short, what is left
// of them is compared, and how much was cut.
func Group(threads iter.Seq[*Thread]) []Grouped {
	var groups []Grouped
	seed := maphash.MakeSeed()
	byHash := map[uint64][]int{} // indexes of groups
next:
	for t := range threads {
		h := t.hash(seed)
		for _, i := range byHash[h] {
			if g := &groups[i]; equal(g.Stack, t) {
				g.Threads = append(g.Threads, t.TID)
				continue next
			}
		}
		byHash[h] = append(byHash[h], len(groups))
		groups = append(groups, Grouped{[]uint32{t.TID}, t.Clone()})
	}
	return groups
}

// Groups walks all threads, in the order of [Stacks.Threads], and puts those
// together whose stacks are equal; see [Group]. The error is of the threads whose
// walk panicked, which are in no group (see [PanicError]).
func (s *Stacks) Groups() (groups []Grouped, err error) {
	groups = Group(func(yield func(*Thread) bool) {
		for t, failed := range s.All() {
			if failed != nil {
				err = errors.Join(err, failed)
			} else if !yield(t) {
				return
			}
		}
	})
	return groups, err
}

// A likeness is what decides whether frames of two stacks are alike.
type likeness struct {
	kind             Kind
	module, function string // the symbol of a native function: its overloads are called alike
	pc               uint64 // where there is no name
	funclet          bool
	why              string // of a gap: the reason
}

func (f *Frame) likeness() likeness {
	l := likeness{kind: f.Kind, module: f.Module, function: f.Function}
	switch {
	case f.Kind == Gap:
		if f.Why != nil {
			l.why = f.Why.Reason
		}
	case f.Function == "":
		l.pc = uint64(f.PC.Addr)
	case f.Symbol != "":
		l.function = f.Symbol
	}
	if f.Method != nil {
		l.funclet = f.Method.Funclet
	}
	return l
}

// hash returns the same number for equal stacks.
func (t *Thread) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range t.Frames {
		maphash.WriteComparable(&h, t.Frames[i].likeness())
	}
	h.WriteString(t.Stop.Reason)
	return h.Sum64()
}

// equal reports whether the stacks of a and b are equal.
func equal(a, b *Thread) bool {
	if len(a.Frames) != len(b.Frames) || a.Omitted != b.Omitted || a.Stop.Reason != b.Stop.Reason {
		return false
	}
	for i := range a.Frames {
		if a.Frames[i].likeness() != b.Frames[i].likeness() {
			return false
		}
	}
	return true
}
