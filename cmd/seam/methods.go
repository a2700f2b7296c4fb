package main

import (
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
			d, err := f.open(args[0], false)
			if err != nil {
				return err
			}
			defer d.Close()
			w := buffered(cmd)
			if err := report.WriteMethods(w, f.format, d.build.Methods()); err != nil {
				return misuse("--format: %v", err)
			}
			return w.Flush()
		},
	}
	f.register(cmd, "text", "json", "perfmap")
	return cmd
}
