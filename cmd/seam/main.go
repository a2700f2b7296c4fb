// Seam shows every thread's whole stack in a dump of a process that is part
// native, part managed.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Exit statuses (docs/json.md).
const (
	exitDone   = 0
	exitError  = 1
	exitUsage  = 2
	exitStrict = 3
)

// errStrict is returned when --strict finds something missing. The results are
// written by then, and say what it is.
var errStrict = errors.New("something is missing from the results")

// commands lists the subcommands. A new one is a file of its own and a line here.
var commands = []func() *cobra.Command{
	newStacks,
	newSnapshot,
	newSeed,
	newInfo,
	newMethods,
	newTrim,
}

func main() {
	// Dump and images are mapped, not read, so that what is allocated is little:
	// 4 MB for the stacks of a process with 60 threads, 17 MB for its snapshots.
	// The default would begin to collect it at 4 MB; from 16 MB on, most runs
	// end first. Stacks as JSON take a tenth less, snapshots a fifth.
	debug.SetGCPercent(400)
	os.Exit(run(os.Args[1:]))
}

// run runs the program, and returns its exit status.
func run(args []string) int {
	started := false // a command began to work: what fails from there on is no misuse
	root := &cobra.Command{
		Use:   "seam",
		Short: "Whole stacks, native and .NET in one list, out of a dump",
		Long: `Seam opens a dump of a process that is part native, part .NET, and shows every
thread's whole stack: how each frame was found, what it is called, and why the
stack ended. It needs no runtime, no debugger and no network, and reads dumps of
any of its systems and CPUs on any machine.

A DUMP is an ELF core, also packed with zstd or gzip; - is standard input. Files
that the dump refers to are looked for beside it, at the paths it names, in the
folders of $SEAM_IMAGES, and in those of --images. A file of another build is
never used, whatever its name.`,
		Example: `  seam stacks core.1234
  seam stacks core.1234.zst --images ./app --images /srv/symbols
  seam info core.1234`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil {
				return err
			}
			started = true
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, c := range commands {
		root.AddCommand(c())
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errStrict):
		return exitStrict
	case !started:
		fmt.Fprintf(os.Stderr, "seam: %v\nRun '%s --help'.\n", err, cmd.CommandPath())
		return exitUsage
	}
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(os.Stderr, "seam: %v\nRun '%s --help'.\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(os.Stderr, "seam: %v\n", err)
	return exitError
}

// A usageError is a misuse that shows only once the command runs.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misuse(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
