package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/loader"
	"github.com/spf13/cobra"
)

func newTrim() *cobra.Command {
	var f shared
	cmd := &cobra.Command{
		Use:   "trim DUMP OUT",
		Short: "A dump cut to what the stacks need",
		Long: `Trim walks all stacks and writes a core that holds only the pages that were read,
those that came from image files included, and the symbols that gave names. It
opens to the same stacks on any machine, with no other files: a dump of megabytes
or gigabytes becomes one to attach to a bug report.

OUT is packed with zstd when its name ends in .zst; - is standard output.

What the process was started with is blanked: its arguments, its environment, and
copies of them, or of values of six bytes or more, in the pages that are kept, as
far as no stack needs them. Vector registers are left out. The rest of those pages
is as it was: stacks, parts of heaps, names, paths, and pieces of what the program
worked on may be in them. Look at it before you publish it.`,
		Example: `  seam trim core.1234 small.core.zst --images ./app
  seam stacks small.core.zst --images none`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.trim(cmd, args[0], args[1]) },
	}
	f.dumpFlags(cmd, "a stack is incomplete or has a gap")
	f.threadFlag(cmd)
	f.symbolFlags(cmd)
	return cmd
}

// trim writes the dump at path in, cut to what its stacks need, to path out.
func (f *shared) trim(cmd *cobra.Command, in, out string) error {
	d, err := f.openTracked(in)
	if err != nil {
		return err
	}
	defer d.Close()
	if len(d.Threads) == 0 {
		return fmt.Errorf("%s: it tells of no thread: there is no stack to keep", in)
	}
	// What seam stacks reads of the trimmed dump must be in it. So the stacks are
	// written here too, to nowhere.
	nowhere, err := report.New(io.Discard, "json", report.Style{})
	if err != nil {
		return err
	}
	strict := f.write(d, nowhere)
	if strict != nil && !errors.Is(strict, errStrict) {
		return strict
	}
	var stats loader.TrimStats
	size, err := writeOut(in, out, cmd.OutOrStdout(), func(w io.Writer) (err error) {
		stats, err = d.WriteTrimmed(w, d.stacks.Kept())
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	line := fmt.Sprintf("%d pages read, %d of them at hand; %d bytes of core", stats.Touched, stats.Touched-stats.Absent, stats.Bytes)
	if size != stats.Bytes {
		line += fmt.Sprintf(", %d packed", size)
	}
	said := cmd.OutOrStdout()
	if out == "-" {
		said = cmd.ErrOrStderr() // standard output has the core
	}
	if _, err := fmt.Fprintln(said, line); err != nil {
		return err
	}
	return strict
}

// writeOut makes the file at path out of what write writes, packed with zstd if
// the name ends in .zst, and returns its size. A file that was there is replaced
// once all is written; the dump itself, at path in, never is.
func writeOut(in, out string, stdout io.Writer, write func(io.Writer) error) (size int64, err error) {
	if out == "-" {
		n := &counter{w: stdout}
		err := write(n)
		return n.n, err
	}
	if a, err := os.Stat(in); err == nil {
		if b, err := os.Stat(out); err == nil && os.SameFile(a, b) {
			return 0, errors.New("it is the dump itself")
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(out), ".seam-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	n := &counter{w: tmp}
	if strings.HasSuffix(out, ".zst") {
		z, err := zstd.NewWriter(n, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return 0, err
		}
		if err := errors.Join(write(z), z.Close()); err != nil {
			return 0, err
		}
	} else if err := write(n); err != nil {
		return 0, err
	}
	// os.CreateTemp makes a file that only its owner can read. A result is as
	// readable as other files.
	if err := tmp.Chmod(0o644); err != nil {
		return 0, err
	}
	if err := tmp.Close(); err != nil {
		return 0, err
	}
	return n.n, os.Rename(tmp.Name(), out)
}

// A counter counts the bytes that are written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
