package managed

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
)

// A verdict counts how a fallback did beside the known answer.
type verdict struct{ tried, right, refused, wrong int }

// TestRescueTruth asks at every frame of every recorded stack, as if the frame
// could not be left, where the saved frame pointer leads to, and where the next
// explicit Frame does, and holds that against the stack: it must be a frame
// further up, with that frame's registers, or nothing. docs/oracles.md has the
// figures.
func TestRescueTruth(t *testing.T) {
	total := map[string]map[string]*verdict{}
	for _, path := range corpus.Dumps(t, `^(net(8|9|10)-.*|deep-.*|native-arm64)/`) {
		p, err := loader.Open(path, &loader.Options{Find: loader.DirFinder(corpus.Images(t))})
		if err != nil {
			continue // a minidump
		}
		s := Open(p, nil)
		cpu := p.Arch.Name
		if total[cpu] == nil {
			total[cpu] = map[string]*verdict{"frame pointer": {}, "explicit Frame": {}}
		}
		w := s.NewWalker()
		for i := range p.Threads {
			e := rescues{t: t, s: s, tid: p.Threads[i].ID}
			for ok := w.Start(&p.Threads[i]); ok; ok = w.Next() {
				e.note(w)
			}
			if e.gap || !w.Stop().Reason.Complete() {
				continue // not all of the stack is known
			}
			e.judge(total[cpu]["frame pointer"], "frame pointer", e.byFP)
			e.judge(total[cpu]["explicit Frame"], "explicit Frame", e.byFrames)
		}
		p.Close()
	}
	for cpu, kinds := range total {
		for what, v := range kinds {
			if t.Logf("%s, %s: %d frames, %d right, %d refused, %d wrong", cpu, what, v.tried, v.right, v.refused, v.wrong); v.right == 0 {
				t.Errorf("%s, %s: never right", cpu, what)
			}
		}
	}
}

// rescues are what was found at each frame of one stack.
type rescues struct {
	t    *testing.T
	s    *Session
	tid  uint32
	gap  bool
	at   []place
	regs []arch.Regs

	byFP, byFrames []*rescue // nil where there is none
}

func (e *rescues) note(w *Walker) {
	e.gap = e.gap || w.now.Kind == Gap
	e.at = append(e.at, placeOf(&w.now))
	e.regs = append(e.regs, *w.native.Regs())
	found := func(to rescue, ok bool) *rescue {
		if !ok {
			return nil
		}
		return &to
	}
	e.byFP = append(e.byFP, found(w.byFramePointer()))
	e.byFrames = append(e.byFrames, found(w.byFrames()))
}

func (e *rescues) judge(v *verdict, what string, list []*rescue) {
	a := e.s.Process.Arch
	for i, to := range list {
		v.tried++
		if to == nil {
			v.refused++
			continue
		}
		pc, _ := to.regs.Get(a.PC)
		sp, known := to.regs.Get(a.SP)
		k := i + 1
		for k < len(e.at) && (uint64(e.at[k].pc) != pc || known && uint64(e.at[k].sp) != sp || e.at[k].sp < to.low) {
			k++
		}
		if k == len(e.at) {
			v.wrong++
			e.t.Errorf("%s: thread %d, frame %d: the %s leads to pc %#x, sp %#x, which is no frame", e.s.Process.Path, e.tid, i, what, pc, sp)
			continue
		}
		v.right++
		for r := arch.Reg(0); r < arch.MaxRegs; r++ {
			is, ok1 := e.regs[k].Get(r)
			if got, ok2 := to.regs.Get(r); ok1 && ok2 && got != is {
				v.right--
				v.wrong++
				e.t.Errorf("%s: thread %d, frame %d: the %s leads to frame %d with %s %#x, is %#x", e.s.Process.Path, e.tid, i, what, k, a.RegName(r), got, is)
				break
			}
		}
	}
}
