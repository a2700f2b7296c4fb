package main

import (
	"errors"

	"github.com/seamwalk/seam/internal/report"
	"github.com/spf13/cobra"
)

func newInfo() *cobra.Command {
	var f shared
	cmd := &cobra.Command{
		Use:   "info DUMP",
		Short: "What a dump holds, and what is missing",
		Long: `Info shows what a dump holds: the process and what ended it, its threads, the
images that were mapped with their identity (build id, or timestamp and size) and
where their bytes come from, which files were not found, and the runtimes in it:
version and commit, how each was read, and what is not known of it.

Bytes of an image come from the dump, from a file of the same identity, or from
nowhere (none): then walks can leave its frames only by guessing.`,
		Example: `  seam info core.1234
  seam info core.1234 --format json | jq -r '.images[] | select(.bytes == "none") | .name'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			style, err := f.style(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			d, err := f.open(args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			info := &report.Info{Head: d.head(), Missing: d.stacks.Absent()}
			for _, t := range d.selected {
				info.Threads = append(info.Threads, d.stacks.Thread(t))
			}
			info.Tail = d.stacks.Summary() // with what came up meanwhile
			w := buffered(cmd)
			if err := errors.Join(report.Write(w, f.format, style, info), w.Flush()); err != nil {
				return err
			}
			if f.strict && (len(info.Threads) == 0 || len(info.Tail.Warnings) > 0) {
				return errStrict
			}
			return nil
		},
	}
	f.dumpFlags(cmd, "there is no thread, or any warning")
	f.threadFlag(cmd)
	f.formatFlag(cmd, "paths", "text", "json")
	return cmd
}
