package main

import (
	"errors"
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
	"github.com/seamwalk/seam/unwind"
	"github.com/spf13/cobra"
)

// seedFlags are the flags of seed.
type seedFlags struct {
	shared
	check   string
	mode    string
	hazards bool
}

func newSeed() *cobra.Command {
	var f seedFlags
	cmd := &cobra.Command{
		Use:   "seed DUMP",
		Short: "The register context that an asynchronous walk is to start from",
		Long: `Seed finds for every managed thread the registers of its topmost managed frame, by
walking natively from its own context, and says how it got there. That is the seed
that a profiler passes to DoStackSnapshot to walk a thread it has stopped.

The runtime looks at a seed only if the thread is in cooperative mode, and checks
nothing of it but that its pc is in managed code: a wrong seed gives a wrong stack,
and S_OK. With --check a seed is judged: what the runtime would return, and in
which way the seed differs from the right one.

Where the search that the documentation describes (unwind natively, ask
GetFunctionFromIP at each frame) finds another seed, or none, that is shown too.`,
		Example: `  seam seed core.1234
  seam seed core.1234 --thread 1240 --check context.bin
  seam seed core.1234 --hazards`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.dumpFlags(cmd, "a thread's frames are lost before a managed one is found, the\nseed of --check is not the right one, --hazards finds one, or there is no thread")
	f.threadFlag(cmd)
	f.limitFlag(cmd, "native frames of a thread")
	f.formatFlag(cmd, "the seed's registers", "text", "json")
	f.symbolFlags(cmd)
	f.widthFlag(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.check, "check", "", "judge the seed `CTX`: a file with a CONTEXT, or its bytes in hex")
	fs.StringVar(&f.mode, "mode", "", "who walks with it: `MODE` is self, suspended or os-suspended")
	completes(cmd, "mode", profiler.Self.String(), profiler.Suspended.String(), profiler.OSSuspended.String())
	fs.BoolVar(&f.hazards, "hazards", false, "say which guideline of asynchronous walks the process breaks")
	return cmd
}

func (f *seedFlags) run(cmd *cobra.Command, path string) error {
	style, err := f.style(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	var given []byte
	if cmd.Flags().Changed("check") {
		if given, err = readContext(f.check); err != nil {
			return fmt.Errorf("--check: %w", err)
		}
	}
	r, err := f.openReplayer(cmd, path, f.mode)
	if err != nil {
		return err
	}
	d := r.d
	defer d.Close()
	out := &report.Seeds{Head: d.head(), Asked: f.hazards}
	for _, t := range d.selected {
		if m, _ := d.session.Thread(t.ID); m == nil && len(f.threads) == 0 {
			continue
		}
		s, err := f.seed(r, t, given)
		if err != nil {
			return err
		}
		out.Threads = append(out.Threads, s)
	}
	if f.hazards {
		if out.Hazards, err = r.hazards(); err != nil {
			return err
		}
	}
	out.Tail = d.stacks.Summary()
	w := buffered(cmd)
	if err := errors.Join(report.Write(w, f.format, style, out), w.Flush()); err != nil {
		return err
	}
	if f.strict && !out.Sound() {
		return errStrict
	}
	return nil
}

// seed finds the seed of t, and what DoStackSnapshot returns with it, without one,
// and with the seed of --check if that is given.
func (f *seedFlags) seed(r *replayer, t *loader.Thread, given []byte) (report.Seed, error) {
	m, rt := r.d.session.Thread(t.ID)
	n, err := r.snapshotter(rt)
	if err != nil {
		return report.Seed{}, err
	}
	found := n.FindSeed(t)
	s := r.d.seed(t, &found)
	req := profiler.Request{TID: t.ID, Mode: r.mode(&request{Mode: f.mode}, m)}
	if m != nil && req.Mode != profiler.Self {
		req.Thread = profiler.ThreadID(m.Addr)
	}
	callback := func(profiler.Call) profiler.HRESULT { return profiler.S_OK }
	s.Unseeded = n.Do(req, callback)
	if found.Seed != nil {
		req.Context = found.Seed.Context
	}
	s.HR = n.Do(req, callback)
	if given != nil {
		v, err := n.CheckSeed(t, &found, req.Mode, given)
		if err != nil {
			return s, fmt.Errorf("--check: %w", err)
		}
		s.Verdict = &v
	}
	return s, nil
}

// hazards returns the guidelines that the process breaks, each with the lines of
// text that show the frames.
func (r *replayer) hazards() (out []report.Hazard, err error) {
	found, err := profiler.Hazards(r.d.stacks)
	if err != nil {
		return nil, err
	}
	for _, h := range found {
		shown := report.Hazard{Hazard: h}
		for i := range h.Frames {
			shown.Shown = append(shown.Shown, h.Frames[i].String())
		}
		out = append(out, shown)
	}
	return out, nil
}

// seed returns what the search for the seed of t has found, with the names of the
// native frames that it passed and of the frames that the seeds stand for.
func (d *dump) seed(t *loader.Thread, s *profiler.SeedSearch) report.Seed {
	frames := append([]managed.Frame(nil), s.Native...)
	for _, c := range []*profiler.Seed{s.Seed, s.Documented} {
		if c != nil {
			_, rt := d.session.Lookup(c.PC)
			frames = append(frames, managed.Frame{Kind: managed.Managed, PC: arch.PC{Addr: c.PC, Exact: len(s.Native) == 0}, SP: c.SP, Code: c.Code, Runtime: rt})
		}
	}
	named := d.stacks.Describe(t, frames, s.Stop)
	out := report.Seed{Thread: d.stacks.Thread(t), Needed: s.Needed, NeedKnown: s.NeedKnown, SameAsDocs: s.SameAsDocumented() || !s.DocumentedKnown, Native: named.Frames[:len(s.Native)]}
	rest := named.Frames[len(s.Native):]
	if s.Seed != nil {
		out.Seed, rest = d.seedContext(s.Seed, &rest[0]), rest[1:]
	}
	if s.Documented != nil {
		out.Documented = d.seedContext(s.Documented, &rest[0])
	}
	if d.limit > 0 && len(out.Native) > d.limit {
		out.Omitted = len(out.Native) - d.limit
		out.Native = out.Native[:d.limit]
	}
	if s.Seed == nil && s.Stop.Reason != unwind.NotStarted {
		out.Stop = &named.Stop
	}
	out.Lost = s.Seed == nil && !s.Stop.Reason.Complete()
	return out
}

// seedContext returns what is shown of the seed s, of which f is the frame.
func (d *dump) seedContext(s *profiler.Seed, f *stacks.Frame) *report.SeedContext {
	c := &report.SeedContext{PC: s.PC, SP: s.SP, Context: s.Context, Function: f.Function, Suffix: string(f.AppendSuffix(nil))}
	if fp, ok := s.Regs.Get(d.Arch.FP); ok {
		c.FP = arch.Addr(fp)
	}
	for i, name := range d.Arch.Names {
		if v, ok := s.Regs.Get(arch.Reg(i)); ok {
			c.Registers = append(c.Registers, report.Register{Name: name, Value: v})
		}
	}
	return c
}
