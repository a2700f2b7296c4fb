package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// shared are the flags that all commands that open a dump have.
type shared struct {
	images    []string
	symbols   bool
	noSymbols bool
	limit     int
	threads   []string
	format    string
	color     string
	strict    bool
	verbose   bool
	width     int
}

func (f *shared) register(cmd *cobra.Command, formats ...string) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.images, "images", nil, "look for image files in `DIR` too: a plain tree of files, a build-id tree, or a\nsymbol-server tree (repeatable); none: look nowhere but in other --images")
	fs.StringArrayVar(&f.threads, "thread", nil, "only the thread of this `TID` (repeatable)")
	fs.IntVar(&f.limit, "limit", 0, "at most `N` frames of a stack")
	if len(formats) > 0 {
		fs.StringVar(&f.format, "format", formats[0], "write "+strings.Join(formats, " or "))
		cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	}
	fs.BoolVar(&f.symbols, "symbols", true, "name native frames by the symbols of their images")
	fs.BoolVar(&f.noSymbols, "no-symbols", false, "leave native frames without names")
	fs.StringVar(&f.color, "color", "auto", "auto, always or never")
	fs.IntVar(&f.width, "width", 0, "shorten names to lines of `N` characters (default: the terminal's)")
	fs.BoolVar(&f.strict, "strict", false, "exit with status 3 when a stack is incomplete")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show more: stack pointers, how each frame was found, paths")
}

// A dump is an opened dump, ready to be walked.
type dump struct {
	*loader.Process
	session  *managed.Session
	symbols  *symbolize.Symbolizer // nil with --no-symbols
	build    *report.Builder
	selected []*loader.Thread
}

// open opens the dump at path as the flags say.
func (f *shared) open(path string, track bool) (*dump, error) {
	if f.limit < 0 {
		return nil, misuse("--limit %d: not a number of frames", f.limit)
	}
	find, debug, err := f.finders(path)
	if err != nil {
		return nil, err
	}
	p, err := loader.Open(path, &loader.Options{Find: find, Track: track})
	if err != nil {
		return nil, advise(path, err)
	}
	d := &dump{Process: p}
	if d.selected, err = f.selectThreads(p); err != nil {
		p.Close()
		return nil, err
	}
	d.session = managed.Open(p, &managed.Options{MaxFrames: f.limit})
	if f.symbols && !f.noSymbols {
		d.symbols = symbolize.New(p, &symbolize.Options{Find: debug})
	}
	d.build = report.NewBuilder(d.session, d.symbols)
	return d, nil
}

// advise says what to do about a dump that cannot be opened.
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

// debugFolders is where distributions put separate debug files.
var debugFolders = symbolize.DebugFolders{"/usr/lib/debug"}

// finders returns who looks for the image files of the dump at path and the
// debug files among them, and who looks for debug files elsewhere.
func (f *shared) finders(path string) (find, debug loader.Finder, err error) {
	var dirs []loader.Finder
	nowhere := false
	for _, dir := range f.images {
		if dir == "none" {
			nowhere = true
			continue
		}
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return nil, nil, fmt.Errorf("--images %s: there is no such folder", dir)
		}
		dirs = append(dirs, loader.DirFinder(dir))
	}
	if nowhere {
		return loader.MultiFinder(dirs...), nil, nil
	}
	for _, dir := range filepath.SplitList(os.Getenv("SEAM_IMAGES")) {
		if dir != "" {
			dirs = append(dirs, loader.DirFinder(dir))
		}
	}
	if path != "-" {
		dirs = append(dirs, loader.BesideFinder(path))
	}
	dirs = append(dirs, loader.PathFinder())
	return loader.MultiFinder(dirs...), debugFolders, nil
}

// selectThreads returns the threads that --thread asks for, in the order of the dump.
func (f *shared) selectThreads(p *loader.Process) ([]*loader.Thread, error) {
	var want []uint32
	for _, s := range f.threads {
		n, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return nil, misuse("--thread %s: not a thread id", s)
		}
		if !slices.ContainsFunc(p.Threads, func(t loader.Thread) bool { return t.ID == uint32(n) }) {
			return nil, fmt.Errorf("--thread %s: the dump has no such thread; seam info lists its %d", s, len(p.Threads))
		}
		want = append(want, uint32(n))
	}
	var out []*loader.Thread
	for i := range p.Threads {
		if t := &p.Threads[i]; len(want) == 0 || slices.Contains(want, t.ID) {
			out = append(out, t)
		}
	}
	return out, nil
}

// style says how results for eyes look on out.
func (f *shared) style(out io.Writer) (report.Style, error) {
	s := report.Style{Verbose: f.verbose, Width: f.width}
	file, _ := out.(*os.File)
	terminal := file != nil && term.IsTerminal(int(file.Fd()))
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

// walk walks the selected threads and hands their stacks to emit in order. It
// returns errStrict, once all are written, if one is incomplete and --strict is
// given.
func (f *shared) walk(d *dump, emit func(*report.Thread) error) error {
	p := newProgress(len(d.selected))
	defer p.done()
	whole := true
	err := d.build.Walk(d.selected, runtime.GOMAXPROCS(0), func(t *report.Thread) error {
		whole = whole && t.Whole()
		p.step()
		return emit(t)
	})
	if err == nil && f.strict && !whole {
		return errStrict
	}
	return err
}

// A progress tells on a terminal how far long work has come. Short work, nearly
// all there is, passes in silence.
type progress struct {
	n, of int
	next  time.Time // of the next line; zero: never
	wrote bool
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
