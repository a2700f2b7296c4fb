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

// Exit statuses. docs/json.md and the help of seam say when each is returned.
const (
	exitDone   = 0
	exitError  = 1
	exitUsage  = 2
	exitStrict = 3
)

// errStrict is returned when --strict finds something missing. The results have
// been written when it is returned, and they say what is missing.
var errStrict = errors.New("something is missing from the results")

// commands lists the subcommands. A new one is a file of its own and a line here.
// Cobra adds help and completion, and sorts all of them in the help of seam.
var commands = []func() *cobra.Command{
	newStacks,
	newSnapshot,
	newSeed,
	newInfo,
	newMethods,
	newTrim,
	newVersion,
	newMan,
}

func main() {
	// Dumps and image files are mapped, not read, so a run allocates little: 4 MB
	// for the stacks of a process with 60 threads, 17 MB for its snapshots. By
	// default the garbage collector would start at 4 MB. At 400 percent it starts
	// at 16 MB, and most runs end before that: stacks as JSON take a tenth less
	// time, snapshots a fifth.
	debug.SetGCPercent(400)
	os.Exit(run(os.Args[1:]))
}

// run runs the program with the arguments args and returns its exit status.
func run(args []string) int {
	root, started := newRoot()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errStrict) {
		return exitStrict
	}
	fmt.Fprintf(os.Stderr, "seam: %v\n", err)
	if usage := (*usageError)(nil); !*started || errors.As(err, &usage) {
		fmt.Fprintf(os.Stderr, "Run '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitError
}

// newRoot returns the program as a tree of commands. *started becomes true when
// the arguments have been parsed and a command begins to work: an error before
// that is misuse, an error after it is not, unless it is a *usageError.
func newRoot() (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   "seam",
		Short: "Whole stacks, native and .NET in one list, out of a dump",
		Long: `Seam opens a dump of a process that is part native, part .NET, and shows every
thread's whole stack: how each frame was found, what it is called, and why the
stack ended. It needs no runtime, no debugger and no network, and reads dumps of
any of its systems and CPUs on any machine.

A DUMP is an ELF core, also packed with zstd or gzip; - is standard input. Files
that the dump refers to are looked for beside it, at the paths it names, in the
folders of $SEAM_IMAGES, and in those of --images. A file of another build is
never used, whatever its name.

Exit status:
  0  done; the results say what is missing from them
  1  an error: there is no such file, it is no dump, output cannot be written
  2  misuse: an unknown command, flag or value
  3  --strict, and something is missing from the results`,
		Example: `  seam stacks core.1234
  seam stacks core.1234.zst --images ./app --images /srv/symbols
  seam info core.1234`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	// A flag of our own: cobra's would take -v too, which is --verbose elsewhere.
	version := root.Flags().Bool("version", false, "show what seam version shows")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return thisVersion().writeText(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	for _, c := range commands {
		root.AddCommand(c())
	}
	return root, started
}

// A usageError is a misuse that shows only once the command runs, such as
// --format xml.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misuse(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
