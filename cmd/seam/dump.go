package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/stacks"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// shared has the flags that several commands have. A command registers the flags
// that change what the command does; cobra refuses all others.
type shared struct {
	images    []string
	symbols   bool
	noSymbols bool
	limit     int
	threads   []string
	formats   []string // that the command writes
	format    string
	color     string
	strict    bool
	verbose   bool
	width     int
}

// dumpFlags registers the flags of all commands that read a dump. strict is the
// end of the sentence "exit with status 3 when".
func (f *shared) dumpFlags(cmd *cobra.Command, strict string) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.images, "images", nil, "look for image files and portable PDBs in `DIR` too: a plain tree of files, a\nbuild-id tree, a symbol-server tree, or one file (repeatable); none: look nowhere\nbut in other --images")
	fs.BoolVar(&f.strict, "strict", false, "exit with status 3 when "+strict)
}

func (f *shared) threadFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.threads, "thread", nil, "only the thread of this `TID` (repeatable)")
}

func (f *shared) limitFlag(cmd *cobra.Command, of string) {
	cmd.Flags().IntVar(&f.limit, "limit", 0, "show at most `N` "+of+", and say how many more there are; 0: all")
}

func (f *shared) symbolFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.symbols, "symbols", true, "name native frames by the symbols of their images, and tell lines by PDBs")
	fs.BoolVar(&f.noSymbols, "no-symbols", false, "leave native frames without names, and managed ones without lines")
	cmd.MarkFlagsMutuallyExclusive("symbols", "no-symbols")
}

// formatFlag registers --format with the forms that the command writes, of which
// the first is the default, and the flags that say how text looks. verbose says
// what -v adds.
func (f *shared) formatFlag(cmd *cobra.Command, verbose string, formats ...string) {
	f.formats = formats
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", formats[0], "write "+strings.Join(formats, " or "))
	completes(cmd, "format", formats...)
	fs.StringVar(&f.color, "color", "auto", "auto, always or never (text)")
	completes(cmd, "color", "auto", "always", "never")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show more (text): "+verbose)
}

func (f *shared) widthFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.width, "width", 0, "shorten names to lines of `N` characters (text; default: the terminal's)")
}

// completes lets a shell complete the value of a flag of cmd to one of values. It
// panics if cmd has no such flag.
func completes(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// A dump is an open dump whose stacks can be walked.
type dump struct {
	*loader.Process
	session  *managed.Session
	stacks   *stacks.Stacks
	selected []*loader.Thread // those of --thread, or all
	limit    int              // of --limit; 0: all is shown
}

// head returns what all results begin with.
func (d *dump) head() *report.Head {
	return &report.Head{Dump: d.stacks.Dump(), Images: d.stacks.Images, Cause: d.stacks.Cause}
}

// open opens the dump at path as the flags say.
func (f *shared) open(path string) (*dump, error) {
	return f.openWith(path, loader.Options{})
}

// openTracked is open for a command that needs to know which pages were read.
func (f *shared) openTracked(path string) (*dump, error) {
	return f.openWith(path, loader.Options{Track: true})
}

func (f *shared) openWith(path string, opt loader.Options) (*dump, error) {
	var err error
	if opt.Find, err = f.finders(path); err != nil {
		return nil, err
	}
	p, err := loader.Open(path, &opt)
	if err != nil {
		return nil, advise(path, err)
	}
	f.tellUnused(p)
	d := &dump{Process: p, limit: f.limit}
	d.session = managed.Open(p, nil)
	d.stacks = stacks.Of(d.session, &stacks.Options{Limit: f.limit, NoSymbols: f.noSymbols || !f.symbols})
	if d.selected, err = f.selectThreads(d.stacks.Threads()); err != nil {
		p.Close()
		return nil, err
	}
	return d, nil
}

// advise returns err, which says why the dump at path cannot be opened, with the
// path in front and with what can be done about it.
func advise(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: there is no such file", path)
	case errors.Is(err, loader.ErrFormat):
		return fmt.Errorf("%s: %w. Seam reads ELF cores (of the kernel, gcore or createdump), also packed with zstd or gzip", path, loader.ErrFormat)
	case strings.Contains(err.Error(), path):
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// finders returns the finder of image files and debug files for the dump at path.
// It looks in the places of --images, of $SEAM_IMAGES, beside the dump and at the
// paths that the dump names, in this order; with --images none only in other
// places of --images.
func (f *shared) finders(path string) (find loader.Finder, err error) {
	var files []loader.Finder
	nowhere := false
	for _, place := range f.images {
		if place == "none" {
			nowhere = true
			continue
		}
		found, err := finder(place)
		if err != nil {
			return nil, fmt.Errorf("--images %s: %w", place, err)
		}
		files = append(files, found)
	}
	if nowhere {
		return loader.MultiFinder(files...), nil
	}
	for _, place := range filepath.SplitList(os.Getenv("SEAM_IMAGES")) {
		if place == "" {
			continue
		}
		found, err := finder(place)
		if err != nil {
			return nil, fmt.Errorf("$SEAM_IMAGES names %s: %w", place, err)
		}
		files = append(files, found)
	}
	if path != "-" {
		files = append(files, loader.BesideFinder(path))
	}
	files = append(files, loader.PathFinder())
	return loader.MultiFinder(files...), nil
}

// finder returns the finder for a place that the user names: a folder, or one
// file. A misspelt name is an error. If it were passed over, the user would think
// that the files are of no help.
func finder(place string) (loader.Finder, error) {
	st, err := os.Stat(place)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("there is no such folder or file")
	case err != nil:
		return nil, err
	case st.IsDir():
		return loader.DirFinder(place), nil
	}
	return loader.FileFinder(place)
}

// tellUnused adds a warning to p for each file of --images that is the file of
// none of p's images, nor the PDB of one. Folders are not looked at: of these, most
// files are others.
func (f *shared) tellUnused(p *loader.Process) {
	for _, place := range f.images {
		if st, err := os.Stat(place); err != nil || st.IsDir() {
			continue // the word none, or a folder
		}
		file, err := loader.FileFinder(place)
		used := func(m *loader.Image) bool {
			if len(file.Find(m.ID, m.Path)) > 0 {
				return true
			}
			var pdb *loader.PDB
			p.GuardRetry(func() { pdb = p.PDB(arch.Addr(m.Bias())) })
			return m.Format == "pe" && pdb != nil && len(file.Find(loader.ImageID{Name: pdb.Name, PDB: pdb.ID}, "")) > 0
		}
		if err == nil && !slices.ContainsFunc(p.Images, used) {
			p.Warnings = append(p.Warnings, loader.Warning{Code: "image_unused", Off: -1,
				Text: fmt.Sprintf("--images %s: by name and identity it is none of the dump's images", place)})
		}
	}
}

// selectThreads returns those of all threads that --thread asks for.
func (f *shared) selectThreads(all []*loader.Thread) ([]*loader.Thread, error) {
	if len(f.threads) == 0 {
		return all, nil
	}
	var want []uint32
	for _, s := range f.threads {
		n, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return nil, misuse("--thread %s: not a thread id", s)
		}
		if !slices.ContainsFunc(all, func(t *loader.Thread) bool { return t.ID == uint32(n) }) {
			return nil, fmt.Errorf("--thread %s: the dump has no such thread; seam info lists its %d", s, len(all))
		}
		want = append(want, uint32(n))
	}
	return slices.DeleteFunc(all, func(t *loader.Thread) bool { return !slices.Contains(want, t.ID) }), nil
}

// style returns how text on out looks. It checks the flags that say what is
// written. It is called before a dump is opened: opening takes time, which would
// be lost if a flag is wrong.
func (f *shared) style(out io.Writer) (report.Style, error) {
	s := report.Style{Verbose: f.verbose, Width: f.width}
	switch {
	case !slices.Contains(f.formats, f.format):
		return s, misuse("--format %s: there are %s", f.format, strings.Join(f.formats, ", "))
	case f.limit < 0:
		return s, misuse("--limit %d: not a number of lines", f.limit)
	case f.width < 0:
		return s, misuse("--width %d: not a number of characters", f.width)
	}
	file, _ := out.(*os.File)
	terminal := file != nil && term.IsTerminal(int(file.Fd()))
	s.Fold = terminal // nobody reads 260,000 lines of a recursion
	switch f.color {
	case "always":
		s.Color = true
	case "never":
	case "auto":
		s.Color = terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return s, misuse("--color %s: must be auto, always or never", f.color)
	}
	if s.Width == 0 && terminal {
		if w, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.Width = w
		}
	}
	return s, nil
}

// walk walks the selected threads and calls emit with the stack of each, in
// their order. With --strict it returns errStrict if a stack was incomplete,
// after the last stack.
func (f *shared) walk(d *dump, emit func(*stacks.Thread) error) error {
	p := newProgress(len(d.selected))
	defer p.done()
	whole := len(d.selected) > 0 // a dump without threads shows nothing
	err := d.stacks.Each(d.selected, func(t *stacks.Thread) error {
		whole = whole && t.Whole()
		p.step()
		return emit(t)
	})
	if err == nil && f.strict && !whole {
		return errStrict
	}
	return err
}

// A progress shows on a terminal how many threads are done. It begins after a
// second, so that nearly all runs show nothing.
type progress struct {
	n, of int
	next  time.Time // when the line is to be written again; zero: never
	wrote bool      // a line is on the terminal, which done erases
}

func newProgress(of int) *progress {
	p := &progress{of: of}
	if term.IsTerminal(int(os.Stderr.Fd())) && !term.IsTerminal(int(os.Stdout.Fd())) {
		p.next = time.Now().Add(time.Second)
	}
	return p
}

func (p *progress) step() {
	if p.n++; p.next.IsZero() || time.Now().Before(p.next) {
		return
	}
	fmt.Fprintf(os.Stderr, "\r%d of %d threads", p.n, p.of)
	p.wrote, p.next = true, time.Now().Add(100*time.Millisecond)
}

func (p *progress) done() {
	if p.wrote {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// buffered returns a buffer in front of a command's standard output.
func buffered(cmd *cobra.Command) *bufio.Writer {
	return bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
}
