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

// writeViews writes what a profiler would have seen of the selected threads if it
// does what the documentation says: the callbacks of DoStackSnapshot, and for the
// callback of a native run the frames that the profiler finds by walking the run
// itself, from the context that the callback gives it.
func (f *shared) writeViews(cmd *cobra.Command, d *dump, style report.Style) error {
	r, err := newReplayer(d)
	if err != nil {
		return err
	}
	out, whole := &report.Views{Head: d.head()}, true
	for _, t := range d.selected {
		m, rt := d.session.Thread(t.ID)
		if m == nil && len(f.threads) == 0 {
			continue // a profiler only learns of threads that the runtime knows
		}
		n, err := r.snapshotter(rt)
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

// view names what a profiler sees of t. What is over the limit is left out; a run
// counts as many frames as are in it.
func (d *dump) view(t *loader.Thread, view []profiler.ViewFrame) report.View {
	out := report.View{Thread: d.stacks.Thread(t)}
	left := d.limit
	if left == 0 {
		left = math.MaxInt
	}
	// All callbacks are named, whether or not the limit lets them be shown, because
	// the report says which files are missing for names. Of the native frames of a
	// run only the shown ones are named.
	var frames []managed.Frame
	var runs []int // for each callback, how many frames of its run are shown; -1: the callback is left out
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
