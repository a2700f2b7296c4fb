package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/managed/stacks"
	"github.com/spf13/cobra"
)

func newMethods() *cobra.Command {
	var f shared
	cmd := &cobra.Command{
		Use:   "methods DUMP",
		Short: "The methods that a JIT compiler made, by address",
		Long: `Methods lists the code that the runtimes in a dump compiled: its range, the kind
of code, where Seam knows it from, and the method's name.

As a perf map the list can be used by other tools: lines of address, size and
name, as perf expects them in /tmp/perf-PID.map.`,
		Example: `  seam methods core.1234
  seam methods core.1234 --format perfmap > /tmp/perf-1234.map`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			style, err := f.style(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if f.limit > 0 && f.format == perfmap {
				return misuse("--limit: a perf map has no place to say that methods are left out")
			}
			d, err := f.open(args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			m, whole := d.methods()
			w := buffered(cmd)
			if err := errors.Join(report.Write(w, f.format, style, m), w.Flush()); err != nil {
				return err
			}
			if f.format == perfmap {
				for _, warn := range m.Tail.Warnings {
					fmt.Fprintf(cmd.ErrOrStderr(), "seam: warning: %s\n", warn.Text)
				}
			}
			if f.strict && !whole {
				return errStrict
			}
			return nil
		},
	}
	f.dumpFlags(cmd, "there is no method, one without a name, or a warning of\nthe dump or runtime")
	f.limitFlag(cmd, "methods")
	f.formatFlag(cmd, "the MethodDesc of each method", "text", "json", perfmap)
	f.widthFlag(cmd)
	return cmd
}

// perfmap is a form of lines of address, size and name. It has no place for
// warnings, so they go to standard error.
const perfmap = "perfmap"

// methods returns the table of methods, and whether it is whole: the table has a
// method, all have a name, and no warning says that something is missing. The
// warning that a file of another build was not used does not count, because that
// file would have given nothing but names. An empty table comes with a warning
// that says why it is empty.
func (d *dump) methods() (t *report.MethodTable, whole bool) {
	t = &report.MethodTable{Head: d.head(), List: d.stacks.Methods(), Tail: d.stacks.Summary()}
	if len(t.List) == 0 {
		w := stacks.Warning{Code: "no_methods", Text: "no methods: no code that the runtime compiled is in the dump", Offset: -1}
		if len(d.session.Runtimes) == 0 {
			w.Text = "no methods: there is no runtime in this process that could have compiled any"
			if len(d.session.Warnings) > 0 {
				w.Text = "no methods: the runtime in this process cannot be read"
			}
		}
		t.Tail.Warnings = append(t.Tail.Warnings, w)
	}
	lacks := slices.ContainsFunc(t.Tail.Warnings, func(w stacks.Warning) bool { return w.Code != "image_differs" })
	unnamed := slices.ContainsFunc(t.List, func(m stacks.Compiled) bool { return !m.Named() })
	if n := len(t.List) - d.limit; d.limit > 0 && n > 0 {
		t.List, t.Omitted = t.List[:d.limit], n
	}
	return t, !lacks && !unnamed
}
