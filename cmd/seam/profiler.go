package main

import (
	"errors"
	"math"

	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/unwind"
	"github.com/spf13/cobra"
)

// asProfiler writes what a profiler that is written to the documentation would
// have seen of the selected threads: the callbacks of DoStackSnapshot, and the
// native runs that it walks itself from the contexts it is given.
func (f *shared) asProfiler(cmd *cobra.Command, d *dump, style report.Style) error {
	r, err := newReplayer(d, false)
	if err != nil {
		return err
	}
	out, whole := &report.Views{Head: d.head()}, true
	for _, t := range d.selected {
		m, rt := d.session.Thread(t.ID)
		if m == nil && len(f.threads) == 0 {
			continue // the runtime does not know it, and nor does the profiler
		}
		n, err := r.of(rt)
		if err != nil {
			return err
		}
		frames, hr := n.View(t)
		why := n.Why()
		whole = whole && !why.Missing
		view := d.view(t, frames)
		view.HR, view.Why = hr, why.String()
		out.List = append(out.List, view)
	}
	out.Tail = d.stacks.Summary()
	w := buffered(cmd)
	if err := errors.Join(report.Write(w, f.format, style, out), w.Flush()); err != nil {
		return err
	}
	if f.strict && (len(out.List) == 0 || !whole) {
		return errStrict
	}
	return nil
}

// view names what a profiler sees of t, as much as the limit allows: a run is as
// many frames as are in it.
func (d *dump) view(t *loader.Thread, view []profiler.ViewFrame) report.View {
	out := report.View{Thread: d.stacks.Thread(t)}
	left := d.limit
	if left == 0 {
		left = math.MaxInt
	}
	// All callbacks are named, those that are left out too, as the frames of a
	// stack are; of the runs only what is shown.
	var frames []managed.Frame
	var runs []int // for each callback how many frames of its run are shown; -1: it is left out
	for i := range view {
		v := &view[i]
		frames = append(frames, v.Frame)
		isRun := v.Frame.Kind != managed.Managed
		if left == 0 {
			runs = append(runs, -1)
			out.Omitted++
			if isRun {
				out.Omitted += len(v.Run) - 1
			}
			continue
		}
		if !isRun {
			left--
			runs = append(runs, 0)
			continue
		}
		n := min(left, len(v.Run))
		left -= n
		out.Omitted += len(v.Run) - n
		runs = append(runs, n)
		frames = append(frames, v.Run[:n]...)
	}
	named := d.stacks.Describe(t, frames, unwind.Stop{Reason: unwind.EndOfStack}).Frames
	for _, n := range runs {
		if n >= 0 {
			out.Callbacks = append(out.Callbacks, report.Callback{Frame: named[0], Run: named[1 : 1+n]})
		}
		named = named[1+max(n, 0):]
	}
	return out
}
