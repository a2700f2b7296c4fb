package main

import (
	"errors"

	"github.com/seamwalk/seam/internal/report"
	"github.com/spf13/cobra"
)

// stacksFlags are the flags of stacks.
type stacksFlags struct {
	shared
	fold       bool // --fold
	asProfiler bool // --as-profiler
}

func newStacks() *cobra.Command {
	var f stacksFlags
	cmd := &cobra.Command{
		Use:   "stacks DUMP",
		Short: "Every thread's whole stack, native and managed",
		Long: `Stacks shows the whole stack of every thread, native and managed frames in one
list, from the leaf to the root. The last line of each stack says why it ended.

Where the way from a frame to its caller is lost, a line says so and why, and the
stack goes on from what the runtime itself noted on it. At the end stands what is
missing, and which files would supply it.

A managed frame has its line of source where the portable PDB of its assembly is at
hand: within the assembly, beside it, or in --images. With -v the whole path stands
there.

Of a process that crashed, the first line says what ended it: the unhandled
exception, Environment.FailFast and its message, a stack overflow, or a signal. The
thread comes first. Below the heading of a thread in an exception stand the inner
exceptions, with their stack traces.

On a terminal, runs of the same frames are shown once: --fold=false shows them all.

With -v each frame has its stack pointer, and how it was found:
  context         the registers that the thread stopped with
  eh_frame        the unwind information of an ELF file
  debug_frame     the same, in its debug information
  pdata           the unwind information of a PE file
  codes           the unwind information of JIT-compiled or ReadyToRun code
  prologue        by following the instructions of code without any
  frame_pointer   the saved frame pointer
  explicit_frame  a Frame that the runtime left on the stack`,
		Example: `  seam stacks core.1234
  seam stacks core.1234 --thread 1240 -v
  seam stacks core.1234 --format json | jq '.threads[] | select(.crashed)'
  seam stacks core.1234 --images ./app --strict > /dev/null`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.dumpFlags(cmd, "a stack is incomplete or has a gap, or there is none")
	f.threadFlag(cmd)
	f.limitFlag(cmd, "frames of a stack")
	f.formatFlag(cmd, "stack pointers, how each frame was found, paths of source files", report.Formats()...)
	f.symbolFlags(cmd)
	f.widthFlag(cmd)
	cmd.Flags().BoolVar(&f.asProfiler, "as-profiler", false, "show what a profiler would have seen: DoStackSnapshot's callbacks, native runs\nwalked from their contexts")
	cmd.Flags().BoolVar(&f.fold, "fold", false, "show runs of the same frames once (text; default: on a terminal)")
	cmd.MarkFlagsMutuallyExclusive("as-profiler", "fold")
	return cmd
}

func (f *stacksFlags) run(cmd *cobra.Command, path string) error {
	style, err := f.style(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("fold") {
		style.Fold = f.fold
	}
	if f.fold && f.format != "text" {
		return misuse("--fold is for --format text")
	}
	w := buffered(cmd)
	out, err := report.New(w, f.format, style)
	if err != nil {
		return err
	}
	d, err := f.open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if f.asProfiler {
		return f.writeViews(cmd, d, style)
	}
	strict := f.write(d, out)
	if strict != nil && !errors.Is(strict, errStrict) {
		return strict
	}
	if err := w.Flush(); err != nil {
		return err // and not errStrict, which says that all results have been written
	}
	return strict
}

// write writes the stacks of the selected threads to out. With --strict it returns
// errStrict if one is incomplete, once all are written.
func (f *shared) write(d *dump, out report.Output) error {
	if err := out.Begin(d.head()); err != nil {
		return err
	}
	strict := f.walk(d, out.Thread)
	if strict != nil && !errors.Is(strict, errStrict) {
		return strict
	}
	if err := out.End(d.stacks.Summary()); err != nil {
		return err
	}
	return strict
}
