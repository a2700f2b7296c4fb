package profiler

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// A ViewFrame is one callback as a profiler sees it, with what it finds by
// walking a native run itself.
type ViewFrame struct {
	Frame managed.Frame // Kind Managed for a method, Native for a run
	// Run are the native frames of a run, from the one that its callback's
	// context is of, up to the next managed frame or the root.
	Run []managed.Frame
}

// View returns what a profiler written to the documentation would have seen of
// t: the callbacks of a walk that starts from the seed that the documented
// search finds, if the thread needs one, and native runs walked from their
// callbacks' contexts. t is a thread of the dump.
func (n *Snapshotter) View(t *loader.Thread) (view []ViewFrame, hr HRESULT) {
	if t == nil {
		n.why = Why{Text: "there is no thread to look at"}
		return nil, E_INVALIDARG
	}
	if err := n.guardRetry(func() { view, hr = n.view(t) }); err != nil {
		return view, n.lost(err)
	}
	return view, hr
}

func (n *Snapshotter) view(t *loader.Thread) (view []ViewFrame, hr HRESULT) {
	req := Request{TID: t.ID, Flags: COR_PRF_SNAPSHOT_REGISTER_CONTEXT}
	m, rt := n.s.Thread(t.ID)
	if m != nil && rt == n.rt {
		if req.Mode = ModeFor(n.s.Process.ABI, m); req.Mode != Self {
			req.Thread = ThreadID(m.Addr)
		}
		if m.Cooperative {
			if found := n.FindSeed(t); found.Documented != nil {
				req.Context = found.Documented.Context
			}
		}
	}
	n.seedWalker().Start(t)
	hr = n.Do(req, func(c Call) HRESULT {
		regs, err := c.Registers()
		if err != nil {
			return E_FAIL
		}
		f := ViewFrame{Frame: managed.Frame{PC: arch.PC{Addr: c.IP}, SP: n.spOf(regs)}}
		if c.Function == 0 {
			f.Run = n.nativeRun(regs)
		} else {
			f.Frame.Kind = managed.Managed
			f.Frame.Code, f.Frame.Runtime = n.lookup(c.IP).code.Code, n.rt
		}
		view = append(view, f)
		return S_OK
	})
	return view, hr
}

// nativeRun walks one native run from the context of its callback.
func (n *Snapshotter) nativeRun(regs *arch.Regs) (run []managed.Frame) {
	w := n.walker
	for ok := w.Resume(regs); ok; ok = w.Leave() {
		f := *w.Frame()
		if n.lookup(f.PC.Addr).managed() {
			break
		}
		f.Kind = managed.Native
		run = append(run, f)
	}
	return run
}
