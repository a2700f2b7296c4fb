package main

import (
	"errors"
	"fmt"

	"github.com/seamwalk/seam/internal/report"
	"github.com/spf13/cobra"
)

func newMethods() *cobra.Command {
	var f shared
	cmd := &cobra.Command{
		Use:   "methods DUMP",
		Short: "The methods that a JIT compiler made, by address",
		Long: `Methods lists the code that the runtimes in a dump compiled: its range, the kind
of code, who told of it, and the method's name.

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
			d, err := f.open(args[0], false)
			if err != nil {
				return err
			}
			defer d.Close()
			m := d.build.Methods()
			w := buffered(cmd)
			if err := errors.Join(report.WriteMethods(w, f.format, style, m), w.Flush()); err != nil {
				return err
			}
			if f.format == perfmap {
				for _, warn := range m.Tail.Warnings {
					fmt.Fprintf(cmd.ErrOrStderr(), "seam: warning: %s\n", warn.Text)
				}
			}
			if f.strict && !m.Whole() {
				return errStrict
			}
			return nil
		},
	}
	f.dumpFlags(cmd, "there is no method, one without a name, or a warning of the dump or runtime")
	f.limitFlag(cmd, "methods")
	f.formatFlag(cmd, "the MethodDesc of each method", "text", "json", perfmap)
	f.widthFlag(cmd)
	return cmd
}

// perfmap is the form without a place for warnings, which go to standard error.
const perfmap = "perfmap"
