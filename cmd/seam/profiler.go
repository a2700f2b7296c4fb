package main

import (
	"errors"

	"github.com/seamwalk/seam/internal/report"
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
	whole := true
	var views []*report.ProfilerView
	for _, t := range d.selected {
		m, rt := d.session.Thread(t.ID)
		if m == nil && len(f.threads) == 0 {
			continue // the runtime does not know it, and nor does the profiler
		}
		n, err := r.of(rt)
		if err != nil {
			return err
		}
		view, hr := n.View(t)
		whole = whole && !n.Why().Missing
		views = append(views, d.build.ProfilerView(t, view, hr, n.Why().String()))
	}
	w := buffered(cmd)
	if err := errors.Join(report.WriteProfilerViews(w, f.format, style, d.build.Head(), views, d.build.Tail()), w.Flush()); err != nil {
		return err
	}
	if f.strict && (len(views) == 0 || !whole) {
		return errStrict
	}
	return nil
}
